--- The next edit: asking for it, and jumping to it, applying all or some of it, or rejecting it.
---
--- At most one is shown, in the current buffer. It is asked for after a change, and withdrawn by the
--- next one that is not part of it. Knows nothing of ghost text, or of how an edit is drawn.

local api = vim.api
local config = require('redraft.config')
local editor = require('redraft.editor')
local edits = require('redraft.edits')
local parts = require('redraft.parts')
local question = require('redraft.question').new()
local server = require('redraft.server')
local ui = require('redraft.ui')
local M = {}

---@class redraft.Shown
---@field bufnr integer
---@field client vim.lsp.Client
---@field edits redraft.Edit[] in the order of the document
---@field command? lsp.Command
---@field tick integer b:changedtick that the edits apply to

local shown ---@type redraft.Shown?
local last ---@type redraft.Shown?
local asked = '' -- buffer and text of the last question
local accepted = '' -- and of the last accept

local function state_of(bufnr)
  return bufnr .. ':' .. api.nvim_buf_get_changedtick(bufnr)
end

---@return redraft.Shown?
local function live()
  local bufnr = api.nvim_get_current_buf()
  local good = shown and shown.bufnr == bufnr and shown.tick == api.nvim_buf_get_changedtick(bufnr)
  return good and not shown.client:is_stopped() and shown or nil
end

local function data_of(edit, more)
  local id = edit.command and edit.command.arguments and edit.command.arguments[1]
  return vim.tbl_extend('force', { kind = 'next_edit', buf = edit.bufnr, id = id, edits = edit.edits }, more or {})
end

local function report(edit, command)
  if edit.command then
    local arguments = edit.command.arguments
    edit.client:exec_cmd({ title = command, command = command, arguments = arguments }, { bufnr = edit.bufnr })
  end
end

--- The edit that is nearest to the cursor, as an index.
---@param list redraft.Edit[]
local function nearest(list)
  local at, best = api.nvim_win_get_cursor(0)[1] - 1, 1
  for index, edit in ipairs(list) do
    if math.abs(edit.row - at) < math.abs(list[best].row - at) then
      best = index
    end
  end
  return best
end

local function withdraw(reason)
  local edit = shown
  if edit then
    shown = nil
    if api.nvim_buf_is_valid(edit.bufnr) then
      ui.clear_edits(edit.bufnr)
    end
    if reason then
      editor.announce('Dismiss', data_of(edit, { reason = reason }))
    end
  end
end

--- Take away what is shown, and forget what was asked.
---@param bufnr? integer only what is shown in this buffer
---@param reason? string
function M.clear(bufnr, reason)
  if not bufnr or not shown or shown.bufnr == bufnr then
    question:cancel()
    withdraw(reason or 'left')
    asked = ''
  end
end

local function show(edit)
  withdraw('replaced')
  shown, last = edit, edit
  ui.edits(edit.bufnr, edit.edits)
  ui.hint(edit.bufnr, edit.edits[nearest(edit.edits)].row)
  editor.announce('Show', data_of(edit))
end

--- The edits of an answer in the buffer's units, without such as change nothing.
---@return redraft.Edit[], string? none, and why
local function edits_of(bufnr, client, result)
  local list, found = result and result.edits or {}, {}
  for _, edit in ipairs(list) do
    local version = vim.tbl_get(edit, 'textDocument', 'version')
    if version and version ~= vim.lsp.util.buf_versions[bufnr] then
      return {}, 'stale-version'
    end
    local one = edits.from_lsp(bufnr, edit, client.offset_encoding)
    if edits.changes(bufnr, one) then
      table.insert(found, one)
    end
  end
  return found, result and result.reason or (#list > 0 and 'no-op' or 'no answer')
end

local function receive(bufnr, client, tick, result, invoked)
  local list, reason = edits_of(bufnr, client, result)
  if #list == 0 then
    withdraw('replaced')
    if invoked then
      vim.notify(('Redraft: no next edit (%s)'):format(reason))
    end
    return
  end
  local command = result.edits[1].command
  show({ bufnr = bufnr, client = client, command = command, tick = tick, edits = list })
  client:notify('textDocument/didShowInlineEdit', { item = { command = command } })
end

--- Ask for the next edit of the current buffer.
---@param opts? { invoked?: boolean } `invoked`: the user asked, and hears when there is none
function M.request(opts)
  local bufnr, invoked = api.nvim_get_current_buf(), (opts or {}).invoked or false
  local client = server.of(bufnr)
  if not client then
    if invoked then
      vim.notify('Redraft: not attached to this buffer', vim.log.levels.WARN)
    end
    return
  end
  local tick = api.nvim_buf_get_changedtick(bufnr)
  asked = state_of(bufnr)
  question:ask(client, 'redraft/nextEdit', bufnr, invoked, function(result, failed)
    local here = api.nvim_get_current_buf() == bufnr and api.nvim_buf_get_changedtick(bufnr) == tick
    if not failed and here then
      receive(bufnr, client, tick, result, invoked)
    end
  end)
end

local function wanted(bufnr)
  local mode = editor.in_mode('n') and 'n' or editor.in_mode('i') and 'i' or nil
  return mode ~= nil
    and config.asks_in(mode)
    and api.nvim_get_current_buf() == bufnr
    and config.is_on(bufnr)
    and not editor.obstacle()
    and not (mode == 'i' and editor.menu_open())
end

--- Ask in a moment, unless this text was asked about already. After an accept nothing is waited for.
---@param bufnr integer
function M.later(bufnr)
  if not config.options.next_edit or state_of(bufnr) == asked then
    return
  end
  local delay = state_of(bufnr) == accepted and 0 or config.options.next_edit_delay
  question:later(delay, function()
    if wanted(bufnr) then
      M.request()
    end
  end)
end

local function jump(edit)
  vim.cmd("normal! m'")
  local length = #api.nvim_buf_get_lines(0, edit.row, edit.row + 1, false)[1]
  api.nvim_win_set_cursor(0, { edit.row + 1, math.min(edit.col, length) })
  vim.cmd('normal! zvzz')
end

--- Whether accepting an edit moves the cursor to it first.
local function is_elsewhere(edit)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local inside = edit.row <= row and row <= edit.end_row
  local always = config.options.jump == 'always' or editor.in_mode('i')
  return ui.off_screen(edit.row) or (always and not inside)
end

local function apply_all(edit)
  withdraw()
  last = nil
  edits.apply(edit.bufnr, edit.edits, nearest(edit.edits))
  accepted = state_of(edit.bufnr)
  report(edit, 'redraft.accept')
  editor.announce('Accept', data_of(edit, { part = 'all' }))
end

--- Apply the next word or line of the nearest edit, and leave the others shown.
local function apply_part(edit, part)
  local which = nearest(edit.edits)
  local target = edit.edits[which]
  local piece = parts.first(target.text, part)
  local now, left = edits.split(edit.edits, which, piece)
  if #left == 0 then
    return apply_all(edit)
  end
  edits.apply(edit.bufnr, { now }, 1)
  edit.edits, edit.tick = left, api.nvim_buf_get_changedtick(edit.bufnr)
  asked = state_of(edit.bufnr)
  ui.edits(edit.bufnr, left)
  edit.client:notify('textDocument/didPartiallyAcceptCompletion', {
    item = { command = edit.command },
    acceptedLength = vim.str_utfindex(piece, 'utf-16'),
  })
  editor.announce('Accept', data_of(edit, { part = part, text = piece }))
end

--- Jump to the next edit when it is out of sight, apply it otherwise. False when none is shown.
---@param part? redraft.Part
---@return boolean
function M.accept(part)
  local edit = live()
  if not edit then
    return false
  end
  local target = edit.edits[nearest(edit.edits)]
  if is_elsewhere(target) then
    jump(target)
    ui.hint(edit.bufnr, target.row)
  elseif part == nil or part == 'all' then
    apply_all(edit)
  else
    apply_part(edit, part)
  end
  return true
end

--- Withdraw the next edit and tell the server that it was not wanted. False when none is shown.
---@return boolean
function M.reject()
  local edit = live()
  if edit then
    report(edit, 'redraft.reject')
    question:cancel()
    withdraw('rejected')
  end
  return edit ~= nil
end

--- Show the last next edit again. False when the text is no longer the one it was made for.
---@return boolean
function M.recall()
  local bufnr = api.nvim_get_current_buf()
  if live() then
    return true
  end
  if not last or last.bufnr ~= bufnr or last.tick ~= api.nvim_buf_get_changedtick(bufnr) then
    return false
  end
  show(last)
  return true
end

--- Whether a next edit is shown in the current buffer.
---@return boolean
function M.visible()
  return live() ~= nil
end

--- Whether one is shown, or the user has asked for one: the server would withdraw it for another question.
---@return boolean
function M.has_priority()
  return M.visible() or question:is_awaited()
end

--- Another question is about to be asked, for which the server withdraws this one. It stays open.
function M.put_off()
  if question:is_pending() then
    question:cancel()
    asked = ''
  end
end

--- Ask by itself in a buffer.
---@param bufnr integer
---@param group integer augroup
function M.attach(bufnr, group)
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  local function changed()
    if not live() then
      M.clear(bufnr, 'moved')
      M.later(bufnr)
    end
  end
  on({ 'TextChanged', 'InsertLeave' }, changed)
  on({ 'TextChangedI', 'TextChangedP' }, function()
    if not live() then
      question:cancel()
      withdraw('moved')
      if config.options.ghost_text ~= true and config.asks_in('i') then
        M.later(bufnr)
      end
    end
  end)
  on('InsertEnter', function()
    if not config.asks_in('i') then
      M.clear(bufnr)
    end
  end)
  on({ 'BufLeave', 'BufUnload' }, function()
    M.clear(bufnr)
  end)
  on({ 'CursorMoved', 'CursorMovedI', 'WinScrolled' }, function()
    local edit = live()
    if edit then
      ui.hint(bufnr, edit.edits[nearest(edit.edits)].row)
    end
  end)
  if vim.bo[bufnr].modified then
    M.later(bufnr) -- what was typed while the server started
  end
end

return M
