--- `:checkhealth redraft`: what is installed, what runs, and what stands in the way.

local M = {}
local health = vim.health
local config = require('redraft.config')
local server = require('redraft.server')

local function neovim()
  local version = 'Neovim ' .. tostring(vim.version())
  if vim.fn.has('nvim-0.11') == 0 then
    health.error(version .. ' is too old: Redraft needs 0.11')
    return false
  end
  local kind = config.options.ghost_text
  if kind == 'native' and not vim.lsp.inline_completion then
    health.warn(version .. " draws no ghost text itself: `ghost_text = 'native'` counts as true")
  elseif kind == 'native' then
    health.ok(version .. ' draws ghost text itself, 200 ms after the last key')
  elseif kind then
    health.ok(version .. ', ghost text is drawn by this plugin')
  else
    health.ok(version .. ', ghost text is switched off')
  end
  return true
end

local function output_of(command)
  local ok, result = pcall(function()
    return vim.system(command, { text = true, env = server.environment() }):wait(20000)
  end)
  if not ok or result.code ~= 0 then
    return nil, ok and result.stderr or tostring(result)
  end
  return vim.trim(result.stdout)
end

local function executable()
  local command = server.config().cmd
  if type(command) ~= 'table' then
    health.warn('`cmd` of the server is not a list')
    return
  end
  local words = table.concat(command, ' ')
  if vim.fn.executable(command[1]) == 0 then
    health.error(('server: `%s` can not be run'):format(command[1]), {
      'install it (`pip install redraft`) where Neovim finds it on PATH,',
      "or name it: require('redraft').setup({ cmd = { '/path/to/redraft', 'lsp' } })",
    })
    return
  end
  local version = server.command('--version')
  if not version then
    health.ok('server: ' .. words)
    return
  end
  local told, problem = output_of(version)
  if told then
    health.ok(('server: %s (%s)'):format(told, words))
  else
    health.error(('server: `%s` fails'):format(table.concat(version, ' ')), problem)
  end
end

local function accept_key()
  local key = config.options.keymaps.accept
  if not key then
    health.info("no key accepts: name one, `keymaps = { accept = '<Tab>' }`, or map <Plug>(redraft-accept)")
    return
  end
  for _, client in ipairs(server.clients()) do
    for bufnr in pairs(client.attached_buffers) do
      local map = vim.api.nvim_buf_call(bufnr, function()
        return vim.fn.maparg(key, 'i', false, true)
      end)
      if not vim.startswith(map.desc or '', 'Redraft: ') then
        health.warn(
          ('%s does not accept in buffer %d: %s has it'):format(key, bufnr, map.desc or 'another mapping'),
          'see :help redraft-completion-plugins'
        )
      end
    end
  end
end

local function neighbours()
  for _, name in ipairs({ 'cmp', 'blink.cmp', 'sidekick' }) do
    if package.loaded[name] then
      health.info(name .. ' is loaded; see :help redraft-completion-plugins')
    end
  end
end

local function client_status(client)
  local buffers = vim.tbl_keys(client.attached_buffers)
  health.ok(('client %d is attached to %d buffers'):format(client.id, #buffers))
  if client.server_capabilities and client.server_capabilities.inlineCompletionProvider then
    health.ok('the server offers inline completion')
  else
    health.error('the server does not offer inline completion')
  end
  for _, bufnr in ipairs(buffers) do
    local on, reason = config.is_on(bufnr)
    if not on then
      health.info(('buffer %d: %s'):format(bufnr, reason))
    end
  end
  local answer, why = client:request_sync('redraft/status', vim.empty_dict(), 5000)
  local report = answer and answer.result
  if not report then
    health.error('no answer to `redraft/status`: ' .. tostring(why or (answer and answer.err)))
    return
  end
  local tell = ({ ready = health.ok, error = health.error })[report.state] or health.warn
  tell(require('redraft.status').describe(report))
end

function M.check()
  health.start('redraft')
  if not neovim() then
    return
  end
  executable()
  if not vim.lsp.is_enabled(config.options.name) then
    health.warn('not enabled', "require('redraft').setup()")
  end
  accept_key()
  neighbours()
  local clients = server.clients()
  if #clients == 0 then
    health.info('the server is not running; it starts with the first file that has a filetype')
  end
  for _, client in ipairs(clients) do
    client_status(client)
  end
  health.info('log: ' .. vim.lsp.log.get_filename() .. ' (:Redraft log)')
  health.info('`redraft doctor` in a shell tells more about model, device and memory')
end

return M
