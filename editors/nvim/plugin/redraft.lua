if vim.g.loaded_redraft then
  return
end
vim.g.loaded_redraft = true

local subcommands = { 'disable', 'enable', 'log', 'next', 'restart', 'status', 'toggle' }

vim.api.nvim_create_user_command('Redraft', function(command)
  local name = command.fargs[1] or 'status'
  if vim.list_contains(subcommands, name) then
    require('redraft')[name]()
  else
    vim.notify('Redraft: no such command: ' .. name, vim.log.levels.ERROR)
  end
end, {
  nargs = '?',
  desc = 'Redraft: ' .. table.concat(subcommands, ', '),
  complete = function(lead)
    return vim.tbl_filter(function(name)
      return vim.startswith(name, lead)
    end, subcommands)
  end,
})

vim.keymap.set({ 'i', 'n' }, '<Plug>(redraft-accept)', function()
  require('redraft').accept()
end)
vim.keymap.set('n', '<Plug>(redraft-reject)', function()
  require('redraft.nes').reject()
end)
vim.keymap.set('n', '<Plug>(redraft-next)', function()
  require('redraft').next()
end)
