--- `:checkhealth redraft`

local M = {}
local health = vim.health

local function neovim()
  if vim.fn.has('nvim-0.12') == 1 and vim.lsp.inline_completion then
    health.ok('Neovim ' .. tostring(vim.version()) .. ' draws ghost text itself')
  elseif vim.fn.has('nvim-0.11') == 1 then
    health.warn('Neovim ' .. tostring(vim.version()) .. ': next edits only; ghost text needs 0.12')
  else
    health.error('Neovim 0.12 is needed (0.11 for next edits only)')
    return false
  end
  return true
end

local function executable()
  local command = (vim.lsp.config.redraft or {}).cmd
  if type(command) ~= 'table' then
    health.warn('`cmd` of the server is not a list')
    return
  end
  if vim.fn.executable(command[1]) == 0 then
    health.error(('server: `%s` can not be run'):format(command[1]), {
      'install it (`pip install redraft`) where Neovim finds it on PATH,',
      "or name it: require('redraft').setup({ cmd = { '/path/to/redraft', 'lsp' } })",
    })
    return
  end
  local version = vim.deepcopy(command)
  if version[#version] == 'lsp' then
    version[#version] = '--version'
    local environment = vim.lsp.config.redraft.cmd_env
    local ok, result = pcall(function()
      return vim.system(version, { text = true, env = environment }):wait(20000)
    end)
    if not ok or result.code ~= 0 then
      health.error('server: `' .. table.concat(version, ' ') .. '` fails', ok and result.stderr or tostring(result))
      return
    end
    health.ok('server: ' .. vim.trim(result.stdout) .. ' (' .. table.concat(command, ' ') .. ')')
  else
    health.ok('server: ' .. table.concat(command, ' '))
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
  for _, bufnr in ipairs(vim.lsp.inline_completion and buffers or {}) do
    if not vim.lsp.inline_completion.is_enabled({ bufnr = bufnr }) then
      health.warn(('ghost text is switched off in buffer %d'):format(bufnr))
    end
  end
  local answer, why = client:request_sync('redraft/status', vim.empty_dict(), 5000)
  local report = answer and answer.result
  if not report then
    health.error('no answer to `redraft/status`: ' .. tostring(why or (answer and answer.err)))
    return
  end
  local tell = ({ ready = health.ok, error = health.error })[report.state] or health.warn
  tell(require('redraft').describe(report))
end

function M.check()
  health.start('redraft')
  if not neovim() then
    return
  end
  executable()
  if not vim.lsp.is_enabled('redraft') then
    health.warn('not enabled', "require('redraft').setup()")
  end
  local clients = vim.lsp.get_clients({ name = 'redraft' })
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
