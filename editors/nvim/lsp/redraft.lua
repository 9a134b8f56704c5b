---@brief
--- Redraft: predicts your next edit with a diffusion language model on your own machine.
---
--- `init_options` are the server's settings, for example
--- `{ gate = 'quiet', disabledLanguages = { 'markdown' } }`; `redraft settings` prints them all.

--- The model is large: one server serves all projects, which become its workspace folders.
---@param client vim.lsp.Client
---@param config vim.lsp.ClientConfig
---@return boolean
local function reuse_client(client, config)
  if client.name ~= config.name or client:is_stopped() then
    return false
  end
  if not config.root_dir then
    return true
  end
  local folder = { uri = vim.uri_from_fname(config.root_dir), name = config.root_dir }
  client.workspace_folders = client.workspace_folders or {}
  for _, known in ipairs(client.workspace_folders) do
    if known.uri == folder.uri then
      return true
    end
  end
  table.insert(client.workspace_folders, folder)
  local function tell()
    client:notify('workspace/didChangeWorkspaceFolders', { event = { added = { folder }, removed = {} } })
  end
  if client.initialized then
    tell()
  else
    vim.api.nvim_create_autocmd('LspAttach', {
      callback = function(event)
        if event.data.client_id == client.id then
          tell()
          return true
        end
      end,
    })
  end
  return true
end

---@type vim.lsp.Config
return {
  cmd = { 'redraft', 'lsp' },
  -- No `filetypes`: every buffer that is a file and has a filetype.
  root_markers = {
    '.git',
    '.hg',
    '.jj',
    { 'pyproject.toml', 'package.json', 'Cargo.toml', 'go.mod', 'Makefile', '.luarc.json' },
  },
  workspace_required = false,
  reuse_client = reuse_client,
  -- The plugin waits a moment after a key before it asks, and Neovim's own inline completion 200 ms;
  -- the server need not wait once more, and it should hear of each key at once, or it answers
  -- questions that are out of date.
  flags = { debounce_text_changes = 0 },
  init_options = { debounceMs = 0 },
}
