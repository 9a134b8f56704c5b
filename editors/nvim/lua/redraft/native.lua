--- Ghost text drawn by Neovim's own inline completion (0.12), kept true to what is typed.
---
--- Stands in for `redraft.ghost` where the option `ghost_text` is 'native'. Neovim asks, 200 ms after
--- the last key, and draws. Between a key and the server's next answer it keeps
--- the old item though: it draws the item even when something else was typed, and puts it where the
--- cursor was, in front of what was typed since. Here such an item is withdrawn, or cut to what is
--- left of it. Items of other servers are left alone.

local api = vim.api
local config = require('redraft.config')
local edits = require('redraft.edits')
local M = {}

local namespace = api.nvim_create_namespace('nvim.lsp.inline_completion')

--- Neovim's state for a buffer; nil where this Neovim keeps it elsewhere.
local function completor(bufnr)
  local found, capability = pcall(require, 'vim.lsp._capability')
  local kind = found and vim.tbl_get(capability, 'all', 'inline_completion')
  return kind and kind.active and kind.active[bufnr] or nil
end

local function client_of(item)
  local client = vim.lsp.get_client_by_id(item.client_id)
  return client and client.name == config.options.name and client or nil
end

--- What of an item is still to be inserted at the cursor: text, row, column, and how many bytes
--- after the cursor it replaces. Nil when it is used up, or the user went another way.
---@return string?, integer?, integer?, integer?
local function rest(item, bufnr)
  local range = item.range
  if type(item.insert_text) ~= 'string' or not range or api.nvim_get_current_buf() ~= bufnr then
    return nil
  end
  local cursor = api.nvim_win_get_cursor(0)
  local row, col = cursor[1] - 1, cursor[2]
  local text = item.insert_text:gsub('\r\n', '\n')
  local ok, typed = pcall(api.nvim_buf_get_text, bufnr, range.start_row, range.start_col, row, col, {})
  if not ok then
    return nil
  end
  local before = table.concat(typed, '\n')
  if #before >= #text or not vim.startswith(text, before) then
    return nil
  end
  return text:sub(#before + 1), row, col, range.end_col - range.start_col
end

local function insert(item, bufnr)
  local text, row, col, width = rest(item, bufnr)
  if not text then
    return false
  end
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  local end_col = math.min(col + width, #line)
  edits.apply(bufnr, { { row = row, col = col, end_row = row, end_col = end_col, text = text } }, 1)
  if item.command then
    client_of(item):exec_cmd(item.command, { bufnr = bufnr })
  end
  return true
end

local function withdraw(bufnr, state)
  state.current = nil
  api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
end

--- Withdraw what no longer continues the text before the cursor.
local function prune(bufnr)
  local state = completor(bufnr)
  local item = state and state.current
  if item and client_of(item) and not rest(item, bufnr) then
    withdraw(bufnr, state)
  end
end

--- Withdraw what is shown.
---@param bufnr? integer
function M.clear(bufnr)
  bufnr = bufnr or api.nvim_get_current_buf()
  local state = completor(bufnr)
  if state and state.current and client_of(state.current) then
    withdraw(bufnr, state)
  end
end

--- Insert all of what is shown, whatever part was asked for. False when nothing is shown.
---@return boolean
function M.accept()
  local bufnr = api.nvim_get_current_buf()
  local state = completor(bufnr)
  local item = state and state.current
  if not item or not item.range or type(item.insert_text) ~= 'string' or not client_of(item) then
    return vim.lsp.inline_completion.get()
  end
  local inserted = insert(item, bufnr)
  withdraw(bufnr, state)
  return inserted
end

--- Withdraw what is shown and tell the server that it was not wanted. False when nothing is.
---@return boolean
function M.reject()
  local bufnr = api.nvim_get_current_buf()
  local state = completor(bufnr)
  local item = state and state.current
  local client = item and client_of(item)
  if not client then
    return false
  end
  if item.command then
    local command = { title = 'Reject', command = 'redraft.reject', arguments = item.command.arguments }
    client:exec_cmd(command, { bufnr = bufnr })
  end
  withdraw(bufnr, state)
  return true
end

function M.complete() end

---@return boolean
function M.recall()
  return false
end

--- Whether ghost text stands in the current buffer.
---@return boolean
function M.visible()
  return #api.nvim_buf_get_extmarks(0, namespace, 0, -1, { limit = 1 }) > 0
end

--- The text that would be inserted; nil when none is shown.
---@return string?
function M.text()
  local bufnr = api.nvim_get_current_buf()
  local state = completor(bufnr)
  local item = state and state.current
  return item and client_of(item) and rest(item, bufnr) or nil
end

function M.menu_changed() end

--- Switch ghost text on in a buffer.
---@param bufnr integer
---@param group integer augroup
function M.attach(bufnr, group)
  vim.lsp.inline_completion.enable(true, { bufnr = bufnr })
  -- After Neovim's own handlers of these events, which were made by enable().
  api.nvim_create_autocmd({ 'CursorMovedI', 'TextChangedI', 'TextChangedP' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      prune(bufnr)
    end,
  })
end

return M
