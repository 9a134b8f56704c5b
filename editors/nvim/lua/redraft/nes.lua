--- The next edit: asking for it, drawing it, and jumping to it, applying it or rejecting it.
---
--- At most one is shown per buffer. It is asked for in normal mode, after a change and on leaving
--- insert mode, and withdrawn by the next change. Knows nothing of ghost text.

local api = vim.api
local M = {}

---@class redraft.Shown
---@field client_id integer
---@field edits { range: lsp.Range, newText: string }[]
---@field command? lsp.Command
---@field tick integer b:changedtick that the edits apply to
---@field rows integer[] first row of each edit

local namespace = api.nvim_create_namespace('redraft.next_edit')
local shown = {} ---@type table<integer, redraft.Shown?>
local timers = {} ---@type table<integer, uv.uv_timer_t?>
local pending = {} ---@type table<integer, { client: vim.lsp.Client, id: integer }?>

local function current(bufnr)
  return (bufnr == nil or bufnr == 0) and api.nvim_get_current_buf() or bufnr
end

---@return redraft.Shown?
local function live(bufnr)
  local edit = shown[bufnr]
  return edit and edit.tick == api.nvim_buf_get_changedtick(bufnr) and edit or nil
end

--- Row and byte column of an LSP position; the end of the text for one behind it.
local function byte_position(bufnr, position, encoding)
  local line = api.nvim_buf_get_lines(bufnr, position.line, position.line + 1, false)[1]
  if not line then
    local last = api.nvim_buf_line_count(bufnr) - 1
    return last, #api.nvim_buf_get_lines(bufnr, last, last + 1, false)[1]
  end
  return position.line, vim.str_byteindex(line, encoding, position.character, false)
end

local function virtual_lines(lines)
  return vim.tbl_map(function(line)
    return { { line == '' and ' ' or line, 'RedraftAdd' } }
  end, lines)
end

local function mark(bufnr, row, col, options)
  api.nvim_buf_set_extmark(bufnr, namespace, row, col, options)
end

--- Old text is highlighted; new text stands in the line where it fits there, and as whole lines
--- below where it does not.
local function draw(bufnr, edit, encoding)
  local row, col = byte_position(bufnr, edit.range.start, encoding)
  local end_row, end_col = byte_position(bufnr, edit.range['end'], encoding)
  local text = edit.newText:gsub('\r\n?', '\n')
  local function line_at(index)
    return api.nvim_buf_get_lines(bufnr, index, index + 1, false)[1]
  end
  local insertion = row == end_row and col == end_col
  if insertion and col == 0 and text:sub(-1) == '\n' then
    local new = virtual_lines(vim.split(text:sub(1, -2), '\n', { plain = true }))
    local above = row == 0
    mark(bufnr, above and 0 or row - 1, 0, { virt_lines = new, virt_lines_above = above })
    return
  end
  if end_col == 0 and end_row > row and text:sub(-1) == '\n' then
    text, end_row = text:sub(1, -2), end_row - 1
    end_col = #line_at(end_row)
  end
  local lines = vim.split(text, '\n', { plain = true })
  local in_line = #lines == 1 or (insertion and col == #line_at(row))
  if not in_line then
    lines[1] = line_at(row):sub(1, col) .. lines[1]
    lines[#lines] = lines[#lines] .. line_at(end_row):sub(end_col + 1)
    col, end_col = 0, #line_at(end_row)
  end
  if not (insertion and in_line) then
    mark(bufnr, row, col, { end_row = end_row, end_col = end_col, hl_group = 'RedraftDelete', strict = false })
  end
  if in_line and lines[1] ~= '' then
    mark(bufnr, end_row, end_col, { virt_text = { { lines[1], 'RedraftAdd' } }, virt_text_pos = 'inline' })
  end
  local below = in_line and vim.list_slice(lines, 2) or lines
  if #below > 0 then
    mark(bufnr, end_row, end_col, { virt_lines = virtual_lines(below) })
  end
end

--- The edit that is nearest to the cursor, as an index.
local function nearest(edit)
  local at, best = api.nvim_win_get_cursor(0)[1] - 1, 1
  for index, row in ipairs(edit.rows) do
    if math.abs(row - at) < math.abs(edit.rows[best] - at) then
      best = index
    end
  end
  return best
end

local function off_screen(row)
  return row < vim.fn.line('w0') - 1 or row > vim.fn.line('w$') - 1
end

--- Draw what is shown anew, with a hint at the cursor when it is out of sight.
local function render(bufnr)
  api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  local edit = live(bufnr)
  local client = edit and vim.lsp.get_client_by_id(edit.client_id)
  if not edit or not client then
    shown[bufnr] = nil
    return
  end
  for _, one in ipairs(edit.edits) do
    draw(bufnr, one, client.offset_encoding)
  end
  if api.nvim_get_current_buf() == bufnr then
    local row, at = edit.rows[nearest(edit)], api.nvim_win_get_cursor(0)[1] - 1
    if off_screen(row) then
      local hint = (' %s next edit: line %d '):format(row < at and '↑' or '↓', row + 1)
      mark(bufnr, at, 0, { virt_text = { { hint, 'RedraftHint' } }, virt_text_pos = 'right_align' })
    end
  end
end

local function stop_timer(bufnr)
  local timer = timers[bufnr]
  timers[bufnr] = nil
  if timer and not timer:is_closing() then
    timer:stop()
    timer:close()
  end
end

local function cancel(bufnr)
  stop_timer(bufnr)
  local request = pending[bufnr]
  pending[bufnr] = nil
  if request and not request.client:is_stopped() then
    request.client:cancel_request(request.id)
  end
end

--- Take away what is shown, and forget what was asked.
---@param bufnr? integer
function M.clear(bufnr)
  bufnr = current(bufnr)
  cancel(bufnr)
  if shown[bufnr] then
    shown[bufnr] = nil
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

local function receive(bufnr, client, tick, result, invoked)
  local edits = result and result.edits or {}
  if not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_changedtick(bufnr) ~= tick then
    return
  end
  if #edits == 0 then
    M.clear(bufnr)
    if invoked then
      vim.notify(('Redraft: no next edit (%s)'):format(result and result.reason or 'no answer'))
    end
    return
  end
  shown[bufnr] = {
    client_id = client.id,
    command = edits[1].command,
    tick = tick,
    edits = vim.tbl_map(function(edit)
      return { range = edit.range, newText = edit.text }
    end, edits),
    rows = vim.tbl_map(function(edit)
      return math.min(edit.range.start.line, api.nvim_buf_line_count(bufnr) - 1)
    end, edits),
  }
  render(bufnr)
  client:notify('textDocument/didShowInlineEdit', { item = { command = edits[1].command } })
end

--- Ask for the next edit of the current buffer.
---@param opts? { invoked?: boolean } `invoked`: the user asked, and hears when there is none
function M.request(opts)
  local bufnr, invoked = api.nvim_get_current_buf(), (opts or {}).invoked or false
  local client = vim.lsp.get_clients({ bufnr = bufnr, name = 'redraft' })[1]
  if not client then
    if invoked then
      vim.notify('Redraft: not attached to this buffer', vim.log.levels.WARN)
    end
    return
  end
  cancel(bufnr)
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[bufnr]
  params.context = { triggerKind = invoked and 1 or 2 }
  local sent, id
  sent, id = client:request('redraft/nextEdit', params, function(err, result)
    if pending[bufnr] and pending[bufnr].id == id then
      pending[bufnr] = nil
      if not err then
        receive(bufnr, client, tick, result, invoked)
      end
    end
  end, bufnr)
  pending[bufnr] = sent and { client = client, id = id } or nil
end

local function later(bufnr, delay)
  stop_timer(bufnr)
  timers[bufnr] = vim.defer_fn(function()
    timers[bufnr] = nil
    if api.nvim_get_current_buf() == bufnr and api.nvim_get_mode().mode == 'n' then
      M.request()
    end
  end, delay)
end

local function jump(row)
  vim.cmd("normal! m'")
  local line = api.nvim_buf_get_lines(0, row, row + 1, false)[1]
  api.nvim_win_set_cursor(0, { row + 1, #line:match('^%s*') })
  vim.cmd('normal! zvzz')
end

local function apply(bufnr, edit)
  local client = vim.lsp.get_client_by_id(edit.client_id)
  if not client then
    return
  end
  local target = edit.edits[nearest(edit)]
  local row, col = byte_position(bufnr, target.range['end'], client.offset_encoding)
  local place = api.nvim_buf_set_extmark(bufnr, namespace, row, col, { right_gravity = true })
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels -- one step of undo, in insert mode too
  vim.lsp.util.apply_text_edits(edit.edits, bufnr, client.offset_encoding)
  local at = api.nvim_buf_get_extmark_by_id(bufnr, namespace, place, {})
  api.nvim_buf_del_extmark(bufnr, namespace, place)
  M.clear(bufnr)
  if at[1] then
    api.nvim_win_set_cursor(0, { math.min(at[1] + 1, api.nvim_buf_line_count(bufnr)), at[2] })
  end
  if edit.command then
    client:exec_cmd(edit.command, { bufnr = bufnr })
  end
end

--- Jump to the next edit when it is off screen, apply it otherwise. False when none is shown.
--- The work is done after the mapping that called, so an `expr` mapping may call this.
---@return boolean
function M.accept()
  local bufnr = api.nvim_get_current_buf()
  if not live(bufnr) then
    return false
  end
  vim.schedule(function()
    local edit = live(bufnr)
    if not edit or api.nvim_get_current_buf() ~= bufnr then
      return
    end
    local row = edit.rows[nearest(edit)]
    if off_screen(row) then
      jump(row)
      render(bufnr)
    else
      apply(bufnr, edit)
    end
  end)
  return true
end

--- Withdraw the next edit and tell the server that it was not wanted. False when none is shown.
---@return boolean
function M.reject()
  local bufnr = api.nvim_get_current_buf()
  local edit = live(bufnr)
  local client = edit and vim.lsp.get_client_by_id(edit.client_id)
  if edit and client and edit.command then
    local arguments = edit.command.arguments
    client:exec_cmd({ title = 'Reject', command = 'redraft.reject', arguments = arguments }, { bufnr = bufnr })
  end
  M.clear(bufnr)
  return edit ~= nil
end

--- Whether a next edit is shown in the buffer.
---@param bufnr? integer
---@return boolean
function M.visible(bufnr)
  return live(current(bufnr)) ~= nil
end

--- Ask by itself in a buffer.
---@param bufnr integer
---@param group integer augroup
---@param delay integer milliseconds between a change and the question
function M.attach(bufnr, group, delay)
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ 'TextChanged', 'InsertLeave' }, function()
    if not live(bufnr) then
      M.clear(bufnr)
      later(bufnr, delay)
    end
  end)
  on({ 'TextChangedI', 'TextChangedP' }, function()
    M.clear(bufnr)
  end)
  on({ 'InsertEnter', 'BufUnload' }, function()
    M.clear(bufnr)
  end)
  on({ 'CursorMoved', 'WinScrolled' }, function()
    if shown[bufnr] then
      render(bufnr)
    end
  end)
end

return M
