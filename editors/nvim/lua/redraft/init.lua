--- Redraft for Neovim: what is done when a file is opened, and what a user can do.

local api = vim.api
local config = require('redraft.config')
local editor = require('redraft.editor')
local ghost = require('redraft.ghost')
local keys = require('redraft.keys')
local nes = require('redraft.nes')
local server = require('redraft.server')
local status = require('redraft.status')
local ui = require('redraft.ui')
local M = {}

local group = api.nvim_create_augroup('redraft', { clear = true })

--- What shows ghost text: this plugin, or Neovim's own inline completion where that is asked for.
local function completer()
  local native = config.options.ghost_text == 'native' and vim.lsp.inline_completion
  return native and require('redraft.native') or ghost
end

ghost.yields = nes.has_priority
ghost.on_question = nes.put_off
ghost.on_silence = function(bufnr)
  if config.asks_in('i') then
    nes.later(bufnr)
  end
end

--- Accept ghost text, else jump to the next edit or apply it. False when there is neither. In a
--- mapping with `expr`, which may not change text, it is done right after.
---@param part? redraft.Part
---@return boolean
function M.accept(part)
  if editor.text_locked() then
    if not M.visible() then
      return false
    end
    vim.schedule(function()
      M.accept(part)
    end)
    return true
  end
  return editor.in_mode('i') and completer().accept(part) or nes.accept(part)
end

--- The same for a key that may have another meaning at this moment.
local function accept_by_key(part)
  return function(is_tab)
    if is_tab and completer().visible() and editor.in_mode('i') then
      return not keys.tab_is_taken('ghost_text', completer().text()) and M.accept(part)
    elseif is_tab and keys.tab_is_taken('next_edit') then
      return false
    end
    return M.accept(part)
  end
end

--- Withdraw what is shown; it is not proposed again. False when nothing is shown.
---@return boolean
function M.reject()
  return completer().reject() or nes.reject()
end

--- Ask for the next edit, and say why there is none.
---@return boolean
function M.next()
  nes.request({ invoked = true })
  return true
end

--- Ask for ghost text, and say when there is none.
---@return boolean
function M.complete()
  completer().complete()
  return true
end

--- Show the last suggestion again, even one that was rejected.
---@return boolean
function M.recall()
  local shown = editor.in_mode('i') and completer().recall() or nes.recall()
  if not shown then
    vim.notify('Redraft: nothing to show again; the text has changed, or nothing was shown')
  end
  return true
end

--- Whether ghost text or a next edit is shown.
---@return boolean
function M.visible()
  return completer().visible() or nes.visible()
end

local function map_keys(bufnr)
  local wanted = config.options.keymaps
  local inserting = config.asks_in('i') and { 'i', 'n' } or { 'n' }
  local actions = {
    { 'accept', { 'i', 'n' }, 'accept', accept_by_key('all') },
    { 'accept_word', { 'i', 'n' }, 'accept the next word', accept_by_key('word') },
    { 'accept_line', { 'i', 'n' }, 'accept the next line', accept_by_key('line') },
    { 'reject', { 'i', 'n' }, 'reject', M.reject },
    { 'next', inserting, 'ask for the next edit', M.next },
    { 'recall', { 'i', 'n' }, 'show the last suggestion again', M.recall },
    { 'complete', { 'i' }, 'ask for ghost text', M.complete },
  }
  for _, action in ipairs(actions) do
    local name, modes, description, call = unpack(action)
    for _, mode in ipairs(wanted[name] and modes or {}) do
      keys.map(bufnr, mode, wanted[name], description, call)
    end
  end
end

local function detach(bufnr)
  ghost.clear(bufnr)
  nes.clear(bufnr)
  api.nvim_clear_autocmds({ group = group, buffer = bufnr })
  keys.unmap(bufnr)
end

local function attach(bufnr)
  detach(bufnr)
  server.follow(bufnr)
  completer().attach(bufnr, group)
  local client = server.of(bufnr)
  if client and vim.lsp.inline_completion and config.options.ghost_text ~= 'native' then
    vim.lsp.inline_completion.enable(false, { client_id = client.id }) -- for others it stays as it is
  end
  nes.attach(bufnr, group)
  api.nvim_create_autocmd('BufEnter', {
    group = group,
    buffer = bufnr,
    callback = function()
      server.focus(bufnr)
    end,
  })
  api.nvim_create_autocmd('CursorMoved', {
    group = group,
    buffer = bufnr,
    callback = function()
      server.place(bufnr)
    end,
  })
  map_keys(bufnr)
end

local function clear_all()
  completer().clear()
  nes.clear()
end

--- Start the server for the files you open. May be called again with other options.
---@param opts? redraft.Config
function M.setup(opts)
  if opts then
    config.set(opts)
  end
  local name = config.options.name
  if name ~= 'redraft' then
    vim.lsp.config(name, vim.lsp.config.redraft)
  end
  vim.lsp.config(name, {
    cmd = config.options.cmd,
    init_options = config.options.settings,
    handlers = { ['redraft/didChangeStatus'] = status.handle },
  })
  ui.highlights()
  api.nvim_clear_autocmds({ group = group })
  api.nvim_create_autocmd('ColorScheme', { group = group, callback = ui.highlights })
  editor.on_menu(group, function()
    completer().menu_changed()
  end)
  local function on(event, callback)
    api.nvim_create_autocmd(event, {
      group = group,
      callback = function(args)
        local client = vim.lsp.get_client_by_id(args.data.client_id)
        if client and client.name == name then
          callback(args.buf)
        end
      end,
    })
  end
  on('LspAttach', attach)
  on('LspDetach', detach)
  for _, client in ipairs(server.clients()) do
    vim.tbl_map(attach, vim.tbl_keys(client.attached_buffers))
  end
  vim.lsp.enable(name)
end

--- Predict again: everywhere, in this buffer, or in files of its type. Starts the server where it
--- does not run.
---@param scope? 'buffer'|'filetype'
function M.enable(scope)
  config.switch(true, scope)
  if scope == nil then
    server.change_settings({ enable = true })
  end
  if not vim.lsp.is_enabled(config.options.name) then
    M.setup()
  end
end

--- Predict nothing: everywhere, in this buffer, or in files of its type. The server stays, so that it
--- knows the text when it is enabled again.
---@param scope? 'buffer'|'filetype'
function M.disable(scope)
  config.switch(false, scope)
  if scope == nil then
    server.change_settings({ enable = false })
  end
  clear_all()
end

---@param scope? 'buffer'|'filetype'
function M.toggle(scope)
  if config.is_on() then
    M.disable(scope)
  else
    M.enable(scope)
  end
end

M.restart = server.restart
M.status = status.show

return M
