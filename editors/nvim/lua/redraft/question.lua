--- One question at a time to the server: asked now or in a moment, and withdrawn by the next one.
---
--- Knows nothing of what is asked or of what is made of the answer.

---@class redraft.Question
---@field private timer? uv.uv_timer_t
---@field private pending? { client: vim.lsp.Client, invoked: boolean, id?: integer }
local Question = {}
Question.__index = Question

---@return redraft.Question
function Question.new()
  return setmetatable({}, Question)
end

--- Call back in a moment, unless something else is wanted before.
---@param milliseconds integer
---@param callback fun()
function Question:later(milliseconds, callback)
  self:stop_timer()
  local timer ---@type uv.uv_timer_t
  timer = vim.defer_fn(function()
    if self.timer == timer then -- one that was stopped may be on its way here already
      self.timer = nil
      callback()
    end
  end, milliseconds)
  self.timer = timer
end

---@private
function Question:stop_timer()
  if self.timer and not self.timer:is_closing() then
    self.timer:stop()
    self.timer:close()
  end
  self.timer = nil
end

--- Withdraw what is waited for.
function Question:cancel()
  self:stop_timer()
  local request = self.pending
  self.pending = nil
  if request and request.id and not request.client:is_stopped() then
    request.client:cancel_request(request.id)
  end
end

--- Whether an answer is waited for.
---@return boolean
function Question:is_pending()
  return self.pending ~= nil
end

--- Whether the user himself waits for an answer.
---@return boolean
function Question:is_awaited()
  return self.pending ~= nil and self.pending.invoked
end

--- Ask about the place of the cursor. The answer comes unless the question was withdrawn; nil where
--- there is none.
---@param client vim.lsp.Client
---@param method string
---@param bufnr integer the current buffer
---@param invoked boolean whether the user asked
---@param callback fun(result?: table, failed: boolean)
function Question:ask(client, method, bufnr, invoked, callback)
  self:cancel()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[bufnr]
  params.context = { triggerKind = invoked and 1 or 2 }
  local request = { client = client, invoked = invoked }
  self.pending = request
  local sent, id = client:request(method, params, function(err, result)
    if self.pending == request then
      self.pending = nil
      callback(result, err ~= nil)
    end
  end, bufnr)
  request.id = id
  if not sent then
    self.pending = nil
  end
end

return Question
