--- Ghost text: asking for it, keeping it true to what is typed, and inserting all or some of it.
---
--- At most one is shown, in insert mode, at the cursor. What the user types of it is taken off it
--- without a question to the server. Knows nothing of next edits.

local api = vim.api
local config = require('redraft.config')
local editor = require('redraft.editor')
local edits = require('redraft.edits')
local parts = require('redraft.parts')
local question = require('redraft.question').new()
local server = require('redraft.server')
local ui = require('redraft.ui')
local M = {}

local BURST_GAPS = 3 -- keys that are further apart than so many pauses are no burst

---@class redraft.Ghost
---@field bufnr integer
---@field client vim.lsp.Client
---@field text string all of it, from where the question was asked
---@field row integer
---@field col integer
---@field replaced string what stands behind the cursor and would go
---@field tail string what stands behind that
---@field command? lsp.Command

local shown ---@type redraft.Ghost?
local last ---@type redraft.Ghost?
local moved_at = 0 -- when the last question was put off, in milliseconds
local asked = '' -- where and about which text the last question was

--- Called when the server has no ghost text for a place that was not asked about by the user.
M.on_silence = function(_) end
--- Called before a question goes out.
M.on_question = function() end
--- Whether something else is shown, or asked for, that ghost text would disturb.
M.yields = function()
  return false
end

local function here(bufnr)
  local cursor = api.nvim_win_get_cursor(0)
  return table.concat({ bufnr, api.nvim_buf_get_changedtick(bufnr), cursor[1], cursor[2] }, ':')
end

--- What is still to be inserted at the cursor: text, row, column, and how many bytes after the
--- cursor it replaces. Nil when it is used up, or the user went another way.
---@param ghost redraft.Ghost
---@return string?, integer?, integer?, integer?
local function rest(ghost)
  if api.nvim_get_current_buf() ~= ghost.bufnr then
    return nil
  end
  local cursor = api.nvim_win_get_cursor(0)
  local row, col = cursor[1] - 1, cursor[2]
  local ok, typed = pcall(api.nvim_buf_get_text, ghost.bufnr, ghost.row, ghost.col, row, col, {})
  if not ok then
    return nil
  end
  local before, after = table.concat(typed, '\n'), api.nvim_get_current_line():sub(col + 1)
  if #before >= #ghost.text or not vim.startswith(ghost.text, before) or not vim.endswith(after, ghost.tail) then
    return nil
  end
  local text, goes = ghost.text:sub(#before + 1), after:sub(1, #after - #ghost.tail)
  if goes ~= ghost.replaced and not vim.endswith(text, goes) then
    return nil -- it grew by something else than a bracket that was closed by itself
  end
  return text, row, col, #goes
end

local function data_of(ghost, more)
  local command = ghost.command
  local id = command and command.arguments and command.arguments[1]
  return vim.tbl_extend('force', { kind = 'ghost_text', buf = ghost.bufnr, id = id, text = ghost.text }, more or {})
end

local function withdraw(reason)
  local ghost = shown
  if ghost then
    shown = nil
    if api.nvim_buf_is_valid(ghost.bufnr) then
      ui.clear_ghost(ghost.bufnr)
    end
    if reason then
      editor.announce('Dismiss', data_of(ghost, { reason = reason }))
    end
  end
end

--- Draw what is left of it; false when nothing is.
local function render()
  local text, row, col, replaced = rest(shown)
  if not text then
    return false
  end
  if editor.menu_open() and not config.options.show_with_menu then
    ui.clear_ghost(shown.bufnr)
  else
    ui.ghost(shown.bufnr, row, col, text, replaced)
  end
  return true
end

--- Show a suggestion; one that is shown already stays as it is.
local function show(ghost)
  local new = not shown or shown.command == nil or not vim.deep_equal(shown.command, ghost.command)
  shown, last = ghost, ghost
  if not render() then
    ui.clear_ghost(ghost.bufnr)
    shown = nil
  elseif new then
    ghost.client:notify('textDocument/didShowCompletion', { item = { command = ghost.command } })
    editor.announce('Show', data_of(ghost))
  end
end

--- Row and column in bytes, never outside of the text.
local function byte_position(bufnr, position, encoding)
  local row = math.min(position.line, api.nvim_buf_line_count(bufnr) - 1)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  return row, vim.str_byteindex(line, encoding, position.character, false)
end

local function receive(bufnr, client, item, invoked)
  local text = item and item.insertText
  if type(text) ~= 'string' or text == '' then
    withdraw('replaced')
    if invoked then
      vim.notify('Redraft: no completion')
    else
      M.on_silence(bufnr)
    end
    return
  end
  local cursor = api.nvim_win_get_cursor(0)
  local row, col, end_row, end_col = cursor[1] - 1, cursor[2], cursor[1] - 1, cursor[2]
  if item.range then
    row, col = byte_position(bufnr, item.range.start, client.offset_encoding)
    end_row, end_col = byte_position(bufnr, item.range['end'], client.offset_encoding)
  end
  local at = cursor[2]
  if row ~= cursor[1] - 1 or end_row ~= row or col > at or end_col < at then
    withdraw('replaced') -- not at the cursor
    return
  end
  local line = api.nvim_get_current_line()
  show({
    bufnr = bufnr,
    client = client,
    text = text:gsub('\r\n', '\n'),
    row = row,
    col = col,
    replaced = line:sub(at + 1, end_col),
    tail = line:sub(end_col + 1),
    command = item.command,
  })
end

local function ask(bufnr, invoked)
  local client = server.of(bufnr)
  if not client then
    return
  end
  local place = here(bufnr)
  asked = place
  M.on_question()
  question:ask(client, 'textDocument/inlineCompletion', bufnr, invoked, function(result, failed)
    if not failed and api.nvim_get_current_buf() == bufnr and editor.in_mode('i') and here(bufnr) == place then
      receive(bufnr, client, result and (result.items or result)[1], invoked)
    end
  end)
end

local function wanted(bufnr)
  return config.options.ghost_text == true
    and api.nvim_get_current_buf() == bufnr
    and editor.in_mode('i')
    and config.is_on(bufnr)
    and not editor.obstacle()
    and not M.yields()
    and (config.options.show_with_menu or not editor.menu_open())
end

--- A key that comes alone is asked about at once; of keys in a burst only the last.
local function pause()
  local now, before = vim.uv.now(), moved_at
  moved_at = now
  local delay = config.options.ghost_text_delay
  return now - before > BURST_GAPS * delay and 0 or delay
end

local function later(bufnr)
  question:cancel()
  question:later(pause(), function()
    if wanted(bufnr) and not shown then
      ask(bufnr, false)
    else
      asked = ''
    end
  end)
end

--- The cursor or the text has moved: keep what still continues it, else take it away and ask anew.
local function follow(bufnr)
  if shown and not editor.obstacle() and render() then
    return
  end
  withdraw('moved')
  local place = here(bufnr)
  if place ~= asked then
    asked = place
    later(bufnr)
  end
end

--- Take away what is shown, and forget what was asked.
---@param bufnr? integer
function M.clear(bufnr)
  if not shown or not bufnr or shown.bufnr == bufnr then
    question:cancel()
    withdraw('left')
  end
  asked = ''
end

--- Ask for ghost text now; the user hears when there is none.
function M.complete()
  if editor.in_mode('i') then
    ask(api.nvim_get_current_buf(), true)
  end
end

--- Show the last one again, where it still continues the text before the cursor.
---@return boolean
function M.recall()
  if last and not shown and editor.in_mode('i') and rest(last) then
    show(last)
  end
  return shown ~= nil
end

local function utf16_length(text)
  return vim.str_utfindex(text, 'utf-16')
end

--- Insert what is shown, or its next word or line. False when nothing is shown.
---@param part? redraft.Part
---@return boolean
function M.accept(part)
  local ghost = shown
  if not ghost or not M.visible() then
    return false
  end
  local text, row, col, replaced = rest(ghost)
  if not text then
    withdraw('moved')
    return false
  end
  local piece = parts.first(text, part or 'all')
  local whole = #piece == #text
  local end_col = col + (whole and replaced or 0)
  edits.apply(ghost.bufnr, { { row = row, col = col, end_row = row, end_col = end_col, text = piece } }, 1)
  if whole then
    withdraw()
    last = nil
    if ghost.command then
      ghost.client:exec_cmd(ghost.command, { bufnr = ghost.bufnr })
    end
    later(ghost.bufnr)
  else
    local length = utf16_length(ghost.text:sub(1, #ghost.text - #text + #piece))
    ghost.client:notify('textDocument/didPartiallyAcceptCompletion', {
      item = { command = ghost.command },
      acceptedLength = length,
    })
    render()
  end
  editor.announce('Accept', data_of(ghost, { part = whole and 'all' or part, text = piece }))
  return true
end

--- Withdraw what is shown and tell the server that it was not wanted. False when nothing is.
---@return boolean
function M.reject()
  local ghost = shown
  if not ghost or not M.visible() then
    return false
  end
  if ghost.command then
    local command = { title = 'Reject', command = 'redraft.reject', arguments = ghost.command.arguments }
    ghost.client:exec_cmd(command, { bufnr = ghost.bufnr })
  end
  asked = here(ghost.bufnr)
  withdraw('rejected')
  return true
end

--- Whether ghost text is on screen.
---@return boolean
function M.visible()
  return shown ~= nil and ui.has_ghost(shown.bufnr)
end

--- The text that would be inserted; nil when none is shown.
---@return string?
function M.text()
  return M.visible() and rest(shown) or nil
end

--- A completion menu was opened or closed: ghost text makes room for it.
function M.menu_changed()
  local bufnr = api.nvim_get_current_buf()
  if editor.in_mode('i') and (shown or server.of(bufnr)) then
    follow(bufnr)
  end
end

--- Ask by itself in a buffer.
---@param bufnr integer
---@param group integer augroup
function M.attach(bufnr, group)
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ 'InsertEnter', 'CursorMovedI', 'TextChangedI', 'TextChangedP' }, function()
    follow(bufnr)
  end)
  on({ 'InsertLeave', 'BufLeave', 'BufUnload' }, function()
    M.clear(bufnr)
  end)
  if api.nvim_get_current_buf() == bufnr and editor.in_mode('i') then
    follow(bufnr) -- what was typed while the server started
  end
end

return M
