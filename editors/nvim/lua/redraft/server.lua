--- The server's process and settings: which client, restarting it, telling it of settings.
---
--- Knows nothing of suggestions.

local api = vim.api
local config = require('redraft.config')
local M = {}

---@return vim.lsp.Client[]
function M.clients()
  return vim.lsp.get_clients({ name = config.options.name })
end

--- The client of one buffer.
---@param bufnr integer
---@return vim.lsp.Client?
function M.of(bufnr)
  return vim.lsp.get_clients({ bufnr = bufnr, name = config.options.name })[1]
end

--- The client of the current buffer, or else any.
---@return vim.lsp.Client?
function M.client()
  return M.of(0) or M.clients()[1]
end

local followed = {} ---@type table<integer, true?>

--- Neovim stops telling of changes of a buffer for good when it changes while no client is
--- attached, after a crash of the server for example. Here they are passed on in its place.
---@param bufnr integer
function M.follow(bufnr)
  local found, changes = pcall(require, 'vim.lsp._changetracking')
  if followed[bufnr] or not found then
    return
  end
  followed[bufnr] = api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, tick, first, last, new_last)
      if not M.of(bufnr) then
        followed[bufnr] = nil
        return true
      end
      if vim.lsp.util.buf_versions[bufnr] ~= tick then
        vim.lsp.util.buf_versions[bufnr] = tick
        changes.send_changes(bufnr, first, last, new_last)
      end
    end,
    on_detach = function()
      followed[bufnr] = nil
    end,
  }) or nil
end

--- Tell the server which buffer is looked at.
---@param bufnr integer
function M.focus(bufnr)
  local client = M.of(bufnr)
  if client then
    client:notify('textDocument/didFocus', { textDocument = { uri = vim.uri_from_bufnr(bufnr) } })
  end
end

--- Tell the server where the cursor is, so that it has read the place before a key is typed there.
---@param bufnr integer the current buffer
function M.place(bufnr)
  local client = M.of(bufnr)
  if client and config.is_on(bufnr) then
    client:notify('redraft/didMoveCursor', vim.lsp.util.make_position_params(0, client.offset_encoding))
  end
end

--- Change settings of the server that runs, and of any that is started later.
---@param changes table
function M.change_settings(changes)
  local settings = { redraft = changes }
  vim.lsp.config(config.options.name, { settings = settings })
  for _, client in ipairs(M.clients()) do
    client.settings = vim.tbl_deep_extend('force', client.settings or {}, settings)
    client:notify('workspace/didChangeConfiguration', { settings = client.settings })
  end
end

--- Stop the server and start a new one for the same buffers.
function M.restart()
  vim.lsp.enable(config.options.name, false)
  local left = 100 -- of 50 ms each
  local function wait()
    left = left - 1
    if left > 0 and #M.clients() > 0 then
      vim.defer_fn(wait, 50)
    else
      vim.lsp.enable(config.options.name)
    end
  end
  wait()
end

--- What the server is started with.
---@return vim.lsp.Config
function M.config()
  return vim.lsp.config[config.options.name] or {}
end

--- The command that runs another part of Redraft; nil where `cmd` is not of a known form.
---@param name string
---@return string[]?
function M.command(name)
  local cmd = M.config().cmd
  if type(cmd) ~= 'table' then
    return nil
  end
  for index, word in ipairs(cmd) do
    if word == 'lsp' then
      return vim.list_extend(vim.list_slice(cmd, 1, index - 1), { name })
    end
  end
end

---@return table<string, string>?
function M.environment()
  return M.config().cmd_env
end

return M
