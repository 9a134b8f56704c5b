--- What the editor is doing just now: menus, snippets, macros, several cursors, indentation.
---
--- Knows nothing of suggestions; answers whether this is a moment for one.

local api = vim.api
local M = {}

--- The answer of another plugin's function, where that plugin is loaded; false where it is not.
local function of_plugin(module, name, ...)
  local plugin = package.loaded[module]
  local known = type(plugin) == 'table' and plugin[name]
  if not known then
    return false
  end
  local ok, answer = pcall(known, ...)
  return ok and answer == true
end

--- Whether a completion menu is open: Neovim's own, nvim-cmp's or blink.cmp's.
---@return boolean
function M.menu_open()
  return vim.fn.pumvisible() == 1
    or of_plugin('cmp', 'visible')
    or of_plugin('blink.cmp', 'is_menu_visible')
end

local hears_cmp = false

--- Call back after a completion menu was opened or closed.
---@param group integer augroup
---@param callback fun()
function M.on_menu(group, callback)
  local later = vim.schedule_wrap(callback)
  api.nvim_create_autocmd({ 'CompleteChanged', 'CompleteDone' }, { group = group, callback = later })
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = { 'BlinkCmpMenuOpen', 'BlinkCmpMenuClose' },
    callback = later,
  })
  api.nvim_create_autocmd('InsertEnter', {
    group = group,
    callback = function()
      local cmp = package.loaded['cmp']
      if not hears_cmp and type(cmp) == 'table' and cmp.event then
        hears_cmp = true
        cmp.event:on('menu_opened', later)
        cmp.event:on('menu_closed', later)
      end
    end,
  })
end

--- Whether Tab would lead to another place of a snippet.
---@return boolean
function M.in_snippet()
  return vim.snippet.active() or of_plugin('luasnip', 'locally_jumpable', 1)
end

local block = false

api.nvim_create_autocmd('ModeChanged', {
  group = api.nvim_create_augroup('redraft.editor', {}),
  callback = function()
    local old, new = vim.v.event.old_mode, vim.v.event.new_mode
    if vim.startswith(new, 'i') then
      block = block or old:find('\22') ~= nil
    elseif not new:find('\22') and new ~= 'niI' then
      block = false
    end
  end,
})

local function several_cursors()
  return block or vim.b.visual_multi ~= nil or of_plugin('multicursor-nvim', 'hasCursors')
end

--- Why this is no moment for a suggestion, in words; nil when it is one.
---@return string?
function M.obstacle()
  if not vim.bo.modifiable then
    return 'the text can not be changed'
  elseif vim.fn.reg_recording() ~= '' or vim.fn.reg_executing() ~= '' then
    return 'a macro is at work'
  elseif several_cursors() then
    return 'there are several cursors'
  elseif M.in_snippet() then
    return 'a snippet is active'
  elseif vim.fn.getcmdwintype() ~= '' then
    return 'the command-line window is open'
  end
end

local function before_cursor()
  return api.nvim_get_current_line():sub(1, api.nvim_win_get_cursor(0)[2])
end

--- Whether only white space stands before the cursor, so that Tab indents.
---@return boolean
function M.at_indent()
  return not before_cursor():find('%S')
end

--- Whether the cursor is short of the indentation of the code above it.
---@return boolean
function M.short_of_indent()
  local row = api.nvim_win_get_cursor(0)[1]
  local above = vim.fn.prevnonblank(row - 1)
  return M.at_indent() and above > 0 and vim.fn.strdisplaywidth(before_cursor()) < vim.fn.indent(above)
end

---@param mode 'i'|'n'
---@return boolean
function M.in_mode(mode)
  local now = api.nvim_get_mode().mode
  return mode == 'n' and now == 'n' or mode == 'i' and (now == 'i' or now == 'ic' or now == 'ix')
end

--- Whether text can not be changed now, as in a mapping with `expr`.
---@return boolean
function M.text_locked()
  local nowhere = api.nvim_buf_line_count(0) + 1
  local _, problem = pcall(api.nvim_buf_set_text, 0, nowhere, 0, nowhere, 0, {})
  return tostring(problem):find('E565') ~= nil
end

--- Let what comes next be a step of undo of its own.
---@param bufnr integer
function M.break_undo(bufnr)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

--- Tell configurations: `User RedraftShow`, `User RedraftAccept`, `User RedraftDismiss`.
---@param name 'Show'|'Accept'|'Dismiss'
---@param data table
function M.announce(name, data)
  api.nvim_exec_autocmds('User', { pattern = 'Redraft' .. name, modeline = false, data = data })
end

return M
