--- `:Redraft`: its subcommands, their arguments, and completing them.

local redraft = require('redraft')
local server = require('redraft.server')
local status = require('redraft.status')
local M = {}

local scopes = { 'buffer', 'filetype' }

local function warn(words)
  vim.notify('Redraft: ' .. words, vim.log.levels.WARN)
end

local function switch(name)
  return function(scope)
    if scope and not vim.list_contains(scopes, scope) then
      return warn(('`%s` takes `buffer`, `filetype` or nothing, not `%s`'):format(name, scope))
    end
    redraft[name](scope)
  end
end

--- Say which model is in use, or use another one: `embedded`, or a path.
local function model(name)
  if name then
    local path = vim.fn.fnamemodify(vim.fn.expand(name), ':p'):gsub('/$', '')
    local known = vim.uv.fs_stat(path) ~= nil
    server.change_settings({ model = known and path or name })
    return
  end
  status.ask(function(report, problem)
    local loaded = report and report.model ~= ''
    local said = loaded and ('Redraft: model %s on %s, %s'):format(report.model, report.device, report.state)
    vim.notify(problem or said or status.describe(report))
  end)
end

--- Run `redraft tune` in a terminal. The server reads what it learned when it is started again.
local function tune(...)
  local command = server.command('tune')
  if not command then
    return warn('`cmd` is not `… lsp`, so the command for `tune` is not known')
  elseif vim.fn.executable(command[1]) == 0 then
    return warn(('`%s` can not be run'):format(command[1]))
  end
  vim.list_extend(command, { ... })
  vim.cmd('botright 12new')
  vim.bo.bufhidden = 'wipe'
  vim.fn.jobstart(command, {
    term = true,
    env = server.environment(),
    on_exit = function(_, code)
      if code == 0 then
        vim.notify('Redraft: tuned; `:Redraft restart` uses what was learned')
      else
        warn(('`%s` ended with code %d'):format(table.concat(command, ' '), code))
      end
    end,
  })
end

--- Open Neovim's log of language servers, where the server's own messages stand.
local function log()
  vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
end

local function accept(part)
  return function()
    if not redraft.accept(part) then
      warn('nothing to accept')
    end
  end
end

local function reject()
  if not redraft.reject() then
    warn('nothing to reject')
  end
end

local subcommands = {
  accept = accept('all'),
  ['accept-line'] = accept('line'),
  ['accept-word'] = accept('word'),
  complete = redraft.complete,
  disable = switch('disable'),
  enable = switch('enable'),
  log = log,
  model = model,
  next = redraft.next,
  recall = redraft.recall,
  reject = reject,
  restart = redraft.restart,
  status = redraft.status,
  toggle = switch('toggle'),
  tune = tune,
}

--- Run one subcommand.
---@param arguments string[]
function M.run(arguments)
  local name = arguments[1] or 'status'
  if subcommands[name] then
    subcommands[name](unpack(arguments, 2))
  else
    vim.notify('Redraft: no such command: ' .. name, vim.log.levels.ERROR)
  end
end

--- Words that may follow.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local name = line:match('Redraft%s+(%S+)%s')
  local words = {}
  if not name then
    words = vim.tbl_keys(subcommands)
  elseif name == 'enable' or name == 'disable' or name == 'toggle' then
    words = scopes
  elseif name == 'model' then
    words = vim.list_extend({ 'embedded' }, vim.fn.getcompletion(lead, 'file'))
  end
  table.sort(words)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

return M
