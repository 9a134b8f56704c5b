--- The options of setup(), and where Redraft is switched on. Knows nothing of what an option does.

local M = {}

---@class redraft.Keymaps
---@field accept? string insert mode: ghost text; both modes: jump to the next edit, then apply it
---@field accept_word? string the same, but only its next word
---@field accept_line? string the same, but only its next line
---@field reject? string both modes: withdraw what is shown, and say that it was not wanted
---@field next? string normal mode: ask for the next edit
---@field recall? string both modes: show the last suggestion again
---@field complete? string insert mode: ask for ghost text

---@class redraft.Config
---@field cmd? string[] command that runs the server
---@field name? string the server's name among Neovim's clients
---@field settings? table settings of the server, see `redraft settings`
---@field ghost_text? boolean|'native' completions at the cursor, drawn by this plugin or by Neovim 0.12
---@field ghost_text_delay? integer milliseconds between the last key of a burst and the question
---@field next_edit? boolean next edits after a change, without being asked
---@field next_edit_delay? integer milliseconds between a change and the question
---@field next_edit_modes? string[] modes in which next edits are asked for: 'n', 'i'
---@field jump? 'off_screen'|'always' when accepting jumps first
---@field show_with_menu? boolean ghost text beside an open completion menu
---@field filetypes? table<string, boolean> filetypes that are switched on or off; '*' is the others
---@field enabled? fun(bufnr: integer): boolean whether a buffer gets suggestions
---@field keymaps? redraft.Keymaps none by default

---@type redraft.Config
local defaults = {
  name = 'redraft',
  settings = {},
  ghost_text = true,
  ghost_text_delay = 20,
  next_edit = true,
  next_edit_delay = 100,
  next_edit_modes = { 'n' },
  jump = 'off_screen',
  show_with_menu = false,
  filetypes = {},
  keymaps = {},
}

local types = {
  cmd = 'table',
  name = 'string',
  settings = 'table',
  ghost_text_delay = 'number',
  next_edit = 'boolean',
  next_edit_delay = 'number',
  next_edit_modes = 'table',
  show_with_menu = 'boolean',
  filetypes = 'table',
  enabled = 'function',
  keymaps = 'table',
}
local choices = {
  ghost_text = { true, false, 'native' },
  jump = { 'off_screen', 'always' },
}
local keys = { 'accept', 'accept_word', 'accept_line', 'reject', 'next', 'recall', 'complete' }

---@type redraft.Config
M.options = vim.deepcopy(defaults)

local everywhere = true

local function complain(words)
  error('redraft.setup(): ' .. words, 0)
end

local function check(opts)
  for name, value in pairs(opts) do
    local wanted = types[name]
    if wanted and type(value) ~= wanted then
      complain(('`%s` must be a %s, not %s'):format(name, wanted, vim.inspect(value)))
    elseif choices[name] and not vim.list_contains(choices[name], value) then
      local allowed = table.concat(vim.tbl_map(vim.inspect, choices[name]), ', ')
      complain(('`%s` must be one of %s, not %s'):format(name, allowed, vim.inspect(value)))
    elseif not wanted and not choices[name] then
      complain(('`%s` is not an option; see :help redraft.setup()'):format(name))
    end
  end
  for name in pairs(opts.keymaps or {}) do
    if not vim.list_contains(keys, name) then
      complain(('`keymaps.%s` is not one of %s'):format(name, table.concat(keys, ', ')))
    end
  end
end

--- Take over options; what is not named has its default. Raises an error that names what is wrong.
---@param opts redraft.Config
function M.set(opts)
  check(opts)
  M.options = vim.tbl_deep_extend('force', defaults, opts)
end

--- Whether next edits are asked for in a mode.
---@param mode 'n'|'i'
---@return boolean
function M.asks_in(mode)
  return vim.list_contains(M.options.next_edit_modes, mode)
end

--- Switch a scope on or off: everything, the current buffer, or its filetype.
---@param on boolean
---@param scope? 'buffer'|'filetype'
function M.switch(on, scope)
  if scope == 'buffer' then
    vim.b.redraft = on
  elseif scope == 'filetype' then
    M.options.filetypes[vim.bo.filetype] = on
  else
    everywhere = on
  end
end

--- Whether a buffer gets suggestions, and why it does not.
---@param bufnr? integer
---@return boolean, string?
function M.is_on(bufnr)
  bufnr = (bufnr == nil or bufnr == 0) and vim.api.nvim_get_current_buf() or bufnr
  if not everywhere then
    return false, 'switched off'
  end
  local own = vim.b[bufnr].redraft
  if own ~= nil and own ~= vim.NIL then
    return own ~= false, own == false and 'switched off in this buffer' or nil
  end
  local filetype, switches = vim.bo[bufnr].filetype, M.options.filetypes
  local kind = switches[filetype]
  if kind == nil then
    kind = switches['*']
  end
  if kind == false then
    return false, ('switched off for filetype %s'):format(filetype)
  end
  if M.options.enabled and not M.options.enabled(bufnr) then
    return false, 'switched off by the option `enabled`'
  end
  return true
end

return M
