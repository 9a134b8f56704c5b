--- Mapped keys that do what they did before when there is nothing to accept or to reject.
---
--- Knows when Tab belongs to something else: a menu, a snippet, indentation. Knows nothing of what
--- an action does.

local api = vim.api
local editor = require('redraft.editor')
local M = {}

local before = {} ---@type table<string, table>

local function feed(keys, remap)
  api.nvim_feedkeys(api.nvim_replace_termcodes(keys, true, true, true), remap and 'im' or 'in', false)
end

--- Do what a key did before it was ours.
local function fall_back(name, key)
  local map = before[name] or {}
  if map.callback and map.expr ~= 1 then
    map.callback()
  elseif map.callback or map.rhs then
    local keys = map.rhs
    if map.callback then
      keys = map.callback() or ''
    elseif map.expr == 1 then
      keys = api.nvim_eval(map.rhs)
    end
    feed(keys, map.noremap == 0)
  else
    feed(key, false)
  end
end

--- Whether Tab has another meaning at this moment. `shown` is 'next_edit' or the ghost text itself.
---@param kind 'ghost_text'|'next_edit'
---@param text? string
---@return boolean
function M.tab_is_taken(kind, text)
  if not editor.in_mode('i') then
    return false -- Tab does not indent, and there are no menus
  elseif editor.menu_open() or editor.in_snippet() then
    return true
  elseif kind == 'next_edit' then
    return editor.at_indent()
  end
  return editor.short_of_indent() or (editor.at_indent() and text ~= nil and text:find('^[ \t]') ~= nil)
end

--- Map a key in a buffer. `action` gets whether the key is Tab, and returns whether it did something.
---@param bufnr integer
---@param mode string
---@param key string
---@param description string
---@param action fun(is_tab: boolean): boolean
function M.map(bufnr, mode, key, description, action)
  local name = mode .. ':' .. bufnr .. ':' .. key
  local old = api.nvim_buf_call(bufnr, function()
    return vim.fn.maparg(key, mode, false, true)
  end)
  if not vim.startswith(old.desc or '', 'Redraft: ') then
    before[name] = old
  end
  local is_tab = vim.keycode(key) == '\t'
  vim.keymap.set(mode, key, function()
    if not action(is_tab) then
      fall_back(name, key)
    end
  end, { buffer = bufnr, desc = 'Redraft: ' .. description })
end

--- Give the keys of a buffer back.
---@param bufnr integer
function M.unmap(bufnr)
  for _, mode in ipairs({ 'i', 'n' }) do
    for _, map in ipairs(api.nvim_buf_get_keymap(bufnr, mode)) do
      if vim.startswith(map.desc or '', 'Redraft: ') then
        vim.keymap.del(mode, map.lhs, { buffer = bufnr })
      end
    end
  end
  for name, map in pairs(before) do
    local mode, of = name:match('^(%a):(%d+):')
    if tonumber(of) == bufnr then
      before[name] = nil
      if map.buffer == 1 then
        api.nvim_buf_call(bufnr, function()
          vim.fn.mapset(mode, false, map)
        end)
      end
    end
  end
end

return M
