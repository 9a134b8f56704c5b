--- Edits of a buffer: from the server's units to rows and bytes, and applying them.
---
--- Knows nothing of where edits come from or how they are drawn.

local api = vim.api
local editor = require('redraft.editor')
local M = {}

local function line_at(bufnr, row)
  return api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
end

--- One edit of the server's. Neovim's text has no line after the last line end: what reaches there
--- is made to end with the last line. Places outside of the text are moved into it.
---@param bufnr integer
---@param edit { range: lsp.Range, text: string }
---@param encoding string
---@return redraft.Edit
function M.from_lsp(bufnr, edit, encoding)
  local count = api.nvim_buf_line_count(bufnr)
  local text = edit.text:gsub('\r\n?', '\n')
  local function place(position)
    local line = line_at(bufnr, position.line)
    if not line then
      return count - 1, #line_at(bufnr, count - 1)
    end
    return position.line, vim.str_byteindex(line, encoding, position.character, false)
  end
  local row, col = place(edit.range.start)
  local end_row, end_col = place(edit.range['end'])
  if edit.range.start.line >= count then
    text = '\n' .. text:gsub('\n$', '')
  elseif edit.range['end'].line >= count then
    if vim.endswith(text, '\n') then
      text = text:sub(1, -2)
    elseif text == '' and col == 0 and row > 0 then
      row, col = row - 1, #line_at(bufnr, row - 1)
    end
  end
  if end_row < row or (end_row == row and end_col < col) then
    end_row, end_col = row, col
  end
  return { row = row, col = col, end_row = end_row, end_col = end_col, text = text }
end

--- Whether an edit changes anything.
---@param bufnr integer
---@param edit redraft.Edit
---@return boolean
function M.changes(bufnr, edit)
  local old = api.nvim_buf_get_text(bufnr, edit.row, edit.col, edit.end_row, edit.end_col, {})
  return table.concat(old, '\n') ~= edit.text
end

--- Where an edit's new text ends, once it stands in the buffer.
---@param edit redraft.Edit
---@param text? string part of the new text
---@return integer, integer
function M.end_of(edit, text)
  local lines = vim.split(text or edit.text, '\n', { plain = true })
  return edit.row + #lines - 1, (#lines == 1 and edit.col or 0) + #lines[#lines]
end

--- Apply edits that do not overlap, in the order of the document, as one step of undo. `follow` is the
--- number of the one at whose end the cursor stands then.
---@param bufnr integer
---@param list redraft.Edit[]
---@param follow integer
function M.apply(bufnr, list, follow)
  local space = api.nvim_create_namespace('redraft.place')
  local place
  editor.break_undo(bufnr)
  for index = #list, 1, -1 do
    local edit = list[index]
    local lines = vim.split(edit.text, '\n', { plain = true })
    api.nvim_buf_set_text(bufnr, edit.row, edit.col, edit.end_row, edit.end_col, lines)
    if index == follow then
      local row, col = M.end_of(edit)
      place = api.nvim_buf_set_extmark(bufnr, space, row, col, { right_gravity = false })
    end
  end
  local at = api.nvim_buf_get_extmark_by_id(bufnr, space, place, {})
  api.nvim_buf_clear_namespace(bufnr, space, 0, -1)
  editor.break_undo(bufnr)
  api.nvim_win_set_cursor(0, { at[1] + 1, at[2] })
end

--- What is left of edits when the first bytes of one are accepted: the part to apply now, and the
--- edits to show then, in coordinates of the text after it.
---@param list redraft.Edit[]
---@param which integer
---@param piece string the beginning of that edit's new text, or all of it
---@return redraft.Edit now, redraft.Edit[] later
function M.split(list, which, piece)
  local edit = list[which]
  local now = vim.tbl_extend('force', edit, { text = piece })
  local row, col = M.end_of(now)
  local rows, cols = row - edit.end_row, col - edit.end_col
  local left = {}
  for index, other in ipairs(list) do
    if index < which then
      table.insert(left, other)
    elseif index == which and #piece < #edit.text then
      local text = edit.text:sub(#piece + 1)
      table.insert(left, { row = row, col = col, end_row = row, end_col = col, text = text })
    elseif index > which then
      local function moved(at_row, at_col)
        return at_row + rows, at_row == edit.end_row and at_col + cols or at_col
      end
      local start_row, start_col = moved(other.row, other.col)
      local end_row, end_col = moved(other.end_row, other.end_col)
      table.insert(left, {
        row = start_row,
        col = start_col,
        end_row = end_row,
        end_col = end_col,
        text = other.text,
      })
    end
  end
  return now, left
end

return M
