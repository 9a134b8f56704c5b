--- Drawing: ghost text at the cursor, the next edit as a diff in the text, and where it is.
---
--- Takes edits in rows and byte columns. Knows nothing of servers or of what is accepted.

local api = vim.api
local M = {}

---@class redraft.Edit
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer
---@field text string new text, lines end with "\n"

local ghost_space = api.nvim_create_namespace('redraft.ghost')
local edit_space = api.nvim_create_namespace('redraft.next_edit')
local hint_space = api.nvim_create_namespace('redraft.hint')

local diff = vim.text and vim.text.diff or vim.diff

local function link(name, groups)
  for _, group in ipairs(groups) do
    if vim.fn.hlexists(group) == 1 then
      return api.nvim_set_hl(0, name, { default = true, link = group })
    end
  end
end

--- Give our highlight groups the colours of groups that every colour scheme has.
function M.highlights()
  link('RedraftGhost', { 'ComplHint', 'NonText' })
  link('RedraftAdd', { 'DiffAdd' })
  local gone = api.nvim_get_hl(0, { name = 'DiffDelete', link = false })
  api.nvim_set_hl(0, 'RedraftDelete', vim.tbl_extend('force', gone, { strikethrough = true, default = true }))
  link('RedraftHint', { 'DiagnosticVirtualTextHint' })
end

--- Virtual text shows a tab as `^I`: spaces instead, as wide as the tab is at its column.
---@param text string
---@param column integer display column at which the text begins
local function untabbed(text, column)
  local width, out = vim.bo.tabstop, {}
  for index, piece in ipairs(vim.split(text, '\t', { plain = true })) do
    if index > 1 then
      local step = width - column % width
      table.insert(out, (' '):rep(step))
      column = column + step
    end
    table.insert(out, piece)
    column = column + api.nvim_strwidth(piece)
  end
  return table.concat(out)
end

local function virtual_lines(lines, group)
  return vim.tbl_map(function(line)
    return { { line == '' and ' ' or untabbed(line, 0), group } }
  end, lines)
end

local function line_at(bufnr, row)
  return api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
end

local function column_at(bufnr, row, col)
  return api.nvim_strwidth(untabbed(line_at(bufnr, row):sub(1, col), 0))
end

--- Draw ghost text at a place. `replaced` is how many bytes after it would go: none of them is
--- painted over, what comes stands before them.
---@param bufnr integer
---@param row integer
---@param col integer
---@param text string
---@param replaced integer
function M.ghost(bufnr, row, col, text, replaced)
  M.clear_ghost(bufnr)
  local goes = line_at(bufnr, row):sub(col + 1, col + replaced)
  local lines = vim.split(text, '\n', { plain = true })
  if replaced > 0 and #lines == 1 and vim.endswith(text, goes) then
    lines[1] = text:sub(1, #text - #goes) -- it stays where it is
  elseif replaced > 0 then
    api.nvim_buf_set_extmark(bufnr, ghost_space, row, col, {
      end_col = col + replaced,
      hl_group = 'RedraftDelete',
    })
  end
  api.nvim_buf_set_extmark(bufnr, ghost_space, row, col, {
    virt_text = { { untabbed(lines[1], column_at(bufnr, row, col)), 'RedraftGhost' } },
    virt_text_pos = 'inline',
    virt_lines = #lines > 1 and virtual_lines(vim.list_slice(lines, 2), 'RedraftGhost') or nil,
    hl_mode = 'combine',
  })
end

---@param bufnr integer
function M.clear_ghost(bufnr)
  api.nvim_buf_clear_namespace(bufnr, ghost_space, 0, -1)
end

---@param bufnr integer
---@return boolean
function M.has_ghost(bufnr)
  return #api.nvim_buf_get_extmarks(bufnr, ghost_space, 0, -1, { limit = 1 }) > 0
end

local function mark(bufnr, row, col, options)
  api.nvim_buf_set_extmark(bufnr, edit_space, row, col, options)
end

local function mark_deletion(bufnr, row, col, end_col)
  mark(bufnr, row, col, { end_col = end_col, hl_group = 'RedraftDelete' })
end

local function mark_insertion(bufnr, row, col, text)
  local shown = untabbed(text, column_at(bufnr, row, col))
  mark(bufnr, row, col, { virt_text = { { shown, 'RedraftAdd' } }, virt_text_pos = 'inline' })
end

local function mark_lines(bufnr, row, lines)
  local above = row < 0
  mark(bufnr, math.max(row, 0), 0, { virt_lines = virtual_lines(lines, 'RedraftAdd'), virt_lines_above = above })
end

--- The words, runs of blanks and single other characters of a line.
local function words(line)
  local found, rest = {}, line
  while rest ~= '' do
    local word = vim.fn.matchstr(rest, [[\v^%(\k+|\s+|.)]])
    word = word ~= '' and word or rest
    table.insert(found, word)
    rest = rest:sub(#word + 1)
  end
  return found
end

local function offsets(tokens)
  local at, result = 0, { 0 }
  for index, token in ipairs(tokens) do
    at = at + #token
    result[index + 1] = at
  end
  return result
end

--- What to delete and to insert so that one line becomes another, in whole words.
---@return { from: integer, to: integer, new: string }[]
local function word_hunks(old, new)
  local a, b = words(old), words(new)
  local at = offsets(a)
  local hunks = {}
  local found = diff(
    table.concat(a, '\n') .. '\n',
    table.concat(b, '\n') .. '\n',
    { result_type = 'indices' }
  )
  for _, hunk in ipairs(found) do
    local start, count, new_start, new_count = unpack(hunk)
    local first = count == 0 and start + 1 or start
    local text = table.concat(vim.list_slice(b, new_start, new_start + new_count - 1))
    if new_count == 0 then
      text = ''
    end
    table.insert(hunks, { from = at[first], to = at[first + count], new = text })
  end
  return hunks
end

--- Whether two lines have so much in common that they are shown as one that changes.
local function alike(old, hunks)
  local gone = 0
  for _, hunk in ipairs(hunks) do
    gone = gone + hunk.to - hunk.from
  end
  return #hunks <= 4 and (gone * 3 <= #old * 2 or #hunks == 1)
end

local function draw_line(bufnr, row, old, new)
  local hunks = word_hunks(old, new)
  if not alike(old, hunks) then
    mark_deletion(bufnr, row, 0, #old)
    mark_lines(bufnr, row, { new })
    return
  end
  for _, hunk in ipairs(hunks) do
    if hunk.to > hunk.from then
      mark_deletion(bufnr, row, hunk.from, hunk.to)
    end
    if hunk.new ~= '' then
      mark_insertion(bufnr, row, hunk.to, hunk.new)
    end
  end
end

local function draw_hunk(bufnr, row, old, new)
  local pairs_ = math.min(#old, #new)
  for index = 1, pairs_ do
    draw_line(bufnr, row + index - 1, old[index], new[index])
  end
  for index = pairs_ + 1, #old do
    local options = { end_row = row + index, end_col = 0, hl_group = 'RedraftDelete', hl_eol = true, strict = false }
    mark(bufnr, row + index - 1, 0, options)
  end
  if #new > pairs_ then
    mark_lines(bufnr, row + pairs_ - 1, vim.list_slice(new, pairs_ + 1))
  end
end

--- Whole lines that an edit touches, before and after it.
---@param bufnr integer
---@param edit redraft.Edit
---@return string[], string[]
local function before_and_after(bufnr, edit)
  local old = api.nvim_buf_get_lines(bufnr, edit.row, edit.end_row + 1, false)
  local new = old[1]:sub(1, edit.col) .. edit.text .. old[#old]:sub(edit.end_col + 1)
  return old, vim.split(new, '\n', { plain = true })
end

local function draw_edit(bufnr, edit)
  local old, new = before_and_after(bufnr, edit)
  local found = diff(
    table.concat(old, '\n') .. '\n',
    table.concat(new, '\n') .. '\n',
    { result_type = 'indices', linematch = 40 }
  )
  for _, hunk in ipairs(found) do
    local start, count, new_start, new_count = unpack(hunk)
    local first = count == 0 and start + 1 or start
    draw_hunk(
      bufnr,
      edit.row + first - 1,
      vim.list_slice(old, first, first + count - 1),
      new_count == 0 and {} or vim.list_slice(new, new_start, new_start + new_count - 1)
    )
  end
end

--- Draw the edits: what goes is highlighted, what comes stands beside or below it.
---@param bufnr integer
---@param edits redraft.Edit[]
function M.edits(bufnr, edits)
  M.clear_edits(bufnr)
  for _, edit in ipairs(edits) do
    draw_edit(bufnr, edit)
  end
end

---@param bufnr integer
function M.clear_edits(bufnr)
  api.nvim_buf_clear_namespace(bufnr, edit_space, 0, -1)
  M.clear_hint(bufnr)
end

---@param row integer
---@return boolean
function M.off_screen(row)
  return row < vim.fn.line('w0') - 1 or row > vim.fn.line('w$') - 1
end

--- Say at the cursor where an edit is that can not be seen: its line, and how far away that is.
---@param bufnr integer
---@param row integer
function M.hint(bufnr, row)
  M.clear_hint(bufnr)
  if not M.off_screen(row) then
    return
  end
  local at = api.nvim_win_get_cursor(0)[1] - 1
  local arrow, side = '↓', 'below'
  if row < at then
    arrow, side = '↑', 'above'
  end
  local hint = (' %s next edit: line %d, %d %s '):format(arrow, row + 1, math.abs(row - at), side)
  api.nvim_buf_set_extmark(bufnr, hint_space, at, 0, {
    virt_text = { { hint, 'RedraftHint' } },
    virt_text_pos = 'eol_right_align',
  })
end

---@param bufnr integer
function M.clear_hint(bufnr)
  api.nvim_buf_clear_namespace(bufnr, hint_space, 0, -1)
end

return M
