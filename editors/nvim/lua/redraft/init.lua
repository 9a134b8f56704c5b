--- Redraft for Neovim: starting the server, ghost text, the next edit, and a few commands.

local api = vim.api
local ghost = require('redraft.ghost')
local nes = require('redraft.nes')
local M = {}

---@class redraft.Keymaps
---@field accept? string insert mode: ghost text; both modes: jump to or apply the next edit
---@field reject? string normal mode: withdraw the next edit
---@field next? string normal mode: ask for the next edit

---@class redraft.Config
---@field cmd? string[] command that runs the server
---@field settings? table settings of the server, see `redraft settings`
---@field ghost_text? boolean show completions at the cursor
---@field next_edit? boolean show the next edit after a change, without being asked
---@field next_edit_delay? integer milliseconds between a change and the question
---@field keymaps? redraft.Keymaps none by default

---@type redraft.Config
M.config = {
  cmd = nil,
  settings = {},
  ghost_text = true,
  next_edit = true,
  next_edit_delay = 100,
  keymaps = {},
}

M.enabled = true

local group = api.nvim_create_augroup('redraft', { clear = true })
local mapped_before = {} ---@type table<string, table>

--- What a key did before it was ours, for when there is nothing to accept.
local function fall_back(key, mode)
  local map = mapped_before[mode .. key] or {}
  if map.callback and map.expr == 1 then
    return map.callback() or ''
  elseif map.callback then
    vim.schedule(map.callback)
    return ''
  elseif map.rhs then
    return map.expr == 1 and api.nvim_eval(map.rhs) or map.rhs
  end
  return key
end

local function map(bufnr, modes, key, description, action)
  for _, mode in ipairs(modes) do
    local before = vim.fn.maparg(key, mode, false, true)
    if not vim.startswith(before.desc or '', 'Redraft: ') then
      mapped_before[mode .. key] = before
    end
    local function feed()
      local keys = api.nvim_replace_termcodes(fall_back(key, mode), true, true, true)
      api.nvim_feedkeys(keys, 'n', false)
    end
    vim.keymap.set(mode, key, function()
      return action(feed) and '' or fall_back(key, mode)
    end, { buffer = bufnr, expr = true, desc = 'Redraft: ' .. description })
  end
end

local followed = {} ---@type table<integer, true?>

--- Neovim 0.12 stops telling of changes of a buffer for good when it changes while no client is
--- attached, after a crash of the server for example. Here they are passed on in its place.
local function follow(bufnr)
  local found, changes = pcall(require, 'vim.lsp._changetracking')
  if followed[bufnr] or not found then
    return
  end
  followed[bufnr] = api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, tick, first, last, new_last)
      if #vim.lsp.get_clients({ bufnr = bufnr, name = 'redraft' }) == 0 then
        followed[bufnr] = nil
        return true
      end
      if vim.lsp.util.buf_versions[bufnr] ~= tick then
        vim.lsp.util.buf_versions[bufnr] = tick
        changes.send_changes(bufnr, first, last, new_last)
      end
    end,
    on_detach = function()
      followed[bufnr] = nil
    end,
  }) or nil
end

local function detach(bufnr)
  nes.clear(bufnr)
  api.nvim_clear_autocmds({ group = group, buffer = bufnr })
end

local function attach(bufnr)
  detach(bufnr)
  follow(bufnr)
  if M.config.ghost_text then
    ghost.attach(bufnr, group)
  end
  if M.config.next_edit then
    nes.attach(bufnr, group, M.config.next_edit_delay)
  end
  local keys = M.config.keymaps
  if keys.accept then
    map(bufnr, { 'i', 'n' }, keys.accept, 'accept', M.accept)
  end
  if keys.reject then
    map(bufnr, { 'n' }, keys.reject, 'reject the next edit', nes.reject)
  end
  if keys.next then
    map(bufnr, { 'n' }, keys.next, 'ask for the next edit', function()
      nes.request({ invoked = true })
      return true
    end)
  end
end

local function highlights()
  api.nvim_set_hl(0, 'RedraftAdd', { default = true, link = 'DiffAdd' })
  api.nvim_set_hl(0, 'RedraftDelete', { default = true, link = 'DiffDelete' })
  api.nvim_set_hl(0, 'RedraftHint', { default = true, link = 'DiagnosticVirtualTextHint' })
end

--- Start the server for the files you open. May be called again with other options.
---@param opts? redraft.Config
function M.setup(opts)
  M.config = vim.tbl_deep_extend('force', M.config, opts or {})
  vim.lsp.config('redraft', { cmd = M.config.cmd, init_options = M.config.settings })
  highlights()
  api.nvim_clear_autocmds({ group = group })
  api.nvim_create_autocmd('ColorScheme', { group = group, callback = highlights })
  local function on(event, callback)
    api.nvim_create_autocmd(event, {
      group = group,
      callback = function(args)
        local client = vim.lsp.get_client_by_id(args.data.client_id)
        if client and client.name == 'redraft' then
          callback(args.buf)
        end
      end,
    })
  end
  on('LspAttach', attach)
  on('LspDetach', detach)
  for _, client in ipairs(vim.lsp.get_clients({ name = 'redraft' })) do
    vim.tbl_map(attach, vim.tbl_keys(client.attached_buffers))
  end
  vim.lsp.enable('redraft')
end

--- Accept ghost text, else jump to or apply the next edit. False when there is neither.
---@param otherwise? fun() called when it turns out a moment later that there was neither
---@return boolean
function M.accept(otherwise)
  local inserting = vim.startswith(api.nvim_get_mode().mode, 'i')
  return (inserting and ghost.accept(otherwise)) or nes.accept()
end

---@return vim.lsp.Client?
function M.client()
  return vim.lsp.get_clients({ bufnr = 0, name = 'redraft' })[1]
    or vim.lsp.get_clients({ name = 'redraft' })[1]
end

--- The setting `enable`, for the server that runs and for any that is started later.
local function switch(on)
  local settings = { redraft = { enable = on } }
  vim.lsp.config('redraft', { settings = settings })
  for _, client in ipairs(vim.lsp.get_clients({ name = 'redraft' })) do
    client.settings = vim.tbl_deep_extend('force', client.settings or {}, settings)
    client:notify('workspace/didChangeConfiguration', { settings = client.settings })
    for bufnr in pairs(client.attached_buffers) do
      ghost.clear(bufnr)
      nes.clear(bufnr)
    end
  end
end

--- Predict again; starts the server where it does not run.
function M.enable()
  M.enabled = true
  switch(true)
  if not vim.lsp.is_enabled('redraft') then
    M.setup()
  end
end

--- Predict nothing. The server stays, so that it knows the text when it is enabled again.
function M.disable()
  M.enabled = false
  switch(false)
end

function M.toggle()
  if M.enabled then
    M.disable()
  else
    M.enable()
  end
end

--- Stop the server and start a new one for the same buffers.
function M.restart()
  vim.lsp.enable('redraft', false)
  local left = 100 -- of 50 ms each
  local function wait()
    left = left - 1
    if left > 0 and #vim.lsp.get_clients({ name = 'redraft' }) > 0 then
      vim.defer_fn(wait, 50)
    else
      vim.lsp.enable('redraft')
    end
  end
  wait()
end

--- One line that says how the server is doing.
---@param report table answer to `redraft/status`
---@return string
function M.describe(report)
  local parts = { 'Redraft ' .. report.version, report.state }
  local function add(format, value)
    if value ~= nil and value ~= vim.NIL and value ~= '' then
      table.insert(parts, format:format(value))
    end
  end
  add('%s', report.message)
  add('model %s', report.model)
  add('on %s', report.device)
  add('last answer in %.0f ms', report.lastLatencyMs)
  add('last silence: %s', report.lastReason)
  return table.concat(parts, ', ')
end

--- Show how the server is doing.
function M.status()
  local client = M.client()
  if not client then
    vim.notify('Redraft is not running')
    return
  end
  client:request('redraft/status', vim.empty_dict(), function(err, report)
    vim.notify(err and ('Redraft: ' .. err.message) or M.describe(report))
  end)
end

--- Open Neovim's log of language servers, where the server's own messages stand.
function M.log()
  vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
end

--- Ask for the next edit.
function M.next()
  nes.request({ invoked = true })
end

return M
