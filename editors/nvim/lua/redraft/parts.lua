--- The next word or line of a suggestion's text. Pure text.

local M = {}

---@alias redraft.Part 'all'|'line'|'word'

local patterns = {
  line = [[\v^\n*[^\n]*]],
  word = [[\v^\_s*%(\k+|%(\k@!\S)+)]],
}

--- The part of a text that is accepted first; all of it where there is no smaller one.
---@param text string
---@param part redraft.Part
---@return string
function M.first(text, part)
  local found = patterns[part] and vim.fn.matchstr(text, patterns[part]) or ''
  return found ~= '' and found or text
end

return M
