if vim.g.loaded_redraft then
  return
end
vim.g.loaded_redraft = true

vim.api.nvim_create_user_command('Redraft', function(command)
  require('redraft.commands').run(command.fargs)
end, {
  nargs = '*',
  desc = 'Redraft: status, switches, and every action on a suggestion',
  complete = function(lead, line)
    return require('redraft.commands').complete(lead, line)
  end,
})

local function plug(modes, name, action, ...)
  local arguments = { ... }
  vim.keymap.set(modes, ('<Plug>(redraft-%s)'):format(name), function()
    require('redraft')[action](unpack(arguments))
  end)
end

plug({ 'i', 'n' }, 'accept', 'accept')
plug({ 'i', 'n' }, 'accept-word', 'accept', 'word')
plug({ 'i', 'n' }, 'accept-line', 'accept', 'line')
plug({ 'i', 'n' }, 'reject', 'reject')
plug({ 'i', 'n' }, 'next', 'next')
plug({ 'i', 'n' }, 'recall', 'recall')
plug('i', 'complete', 'complete')
