--- How the server is doing: for the statusline, for `:Redraft status`, and for configurations.

local config = require('redraft.config')
local server = require('redraft.server')
local M = {}

local told = {} ---@type table<integer, { busy: boolean, kind: string, message: string }>

--- Handler of `redraft/didChangeStatus`.
function M.handle(_, result, context)
  told[context.client_id] = result
  vim.schedule(vim.cmd.redrawstatus)
end

--- The state of the current buffer: '' where Redraft is not attached, 'off', 'busy', 'error', 'ready'.
---@return ''|'off'|'busy'|'error'|'ready'
function M.state()
  local client = server.of(0)
  if not client then
    return ''
  end
  local now = told[client.id] or {}
  if now.kind == 'Error' then
    return 'error'
  elseif now.kind == 'Inactive' or not config.is_on() then
    return 'off'
  end
  return now.busy and 'busy' or 'ready'
end

local lines = { off = 'redraft off', busy = 'redraft …', error = 'redraft error', ready = 'redraft' }

--- For the statusline: `%{v:lua.require'redraft.status'.line()}`. Empty where Redraft is not attached.
---@return string
function M.line()
  return lines[M.state()] or ''
end

--- One line that says how the server is doing.
---@param report table answer to `redraft/status`
---@return string
function M.describe(report)
  local said = { 'Redraft ' .. report.version, report.state }
  local function add(format, value)
    if value ~= nil and value ~= vim.NIL and value ~= '' then
      table.insert(said, format:format(value))
    end
  end
  add('%s', report.message)
  add('model %s', report.model)
  add('on %s', report.device)
  add('last answer in %.0f ms', report.lastLatencyMs)
  add('last silence: %s', report.lastReason)
  return table.concat(said, ', ')
end

--- Ask the server, and call back with the answer or with what is wrong.
---@param callback fun(report?: table, problem?: string)
function M.ask(callback)
  local client = server.client()
  if not client then
    return callback(nil, 'Redraft is not running')
  end
  client:request('redraft/status', vim.empty_dict(), function(err, report)
    callback(report, err and ('Redraft: ' .. err.message))
  end)
end

--- Show how the server is doing, and why this buffer is silent.
function M.show()
  M.ask(function(report, problem)
    local said = { problem or M.describe(report) }
    local on, why = config.is_on()
    local obstacle = require('redraft.editor').obstacle()
    if not on then
      table.insert(said, 'here: ' .. why)
    elseif report and not server.of(0) then
      table.insert(said, 'here: not attached to this buffer')
    elseif obstacle then
      table.insert(said, 'here: ' .. obstacle)
    end
    vim.notify(table.concat(said, ', '))
  end)
end

return M
