/** The pictures of docs/editors.md, from a real VS Code: `npm run pictures`. */

import { CodeServer } from './codeServer';
import { Screen } from './screen';

const TEXT = `class Box:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height


unit = Box(1, 1)
boxes = [unit, Box(2, 3)]
`;
const at = (line: number, character: number) => ({ line, character });
const edit = (line: number, from: number, to: number, new_text: string) => ({
  range: { start: at(line, from), end: at(line, to) },
  new_text,
});
const edits = [
  edit(4, 0, 0, '        self.depth = depth\n        self.volume = width * height * depth\n'),
  edit(9, 14, 15, '1, 1'),
  edit(10, 22, 23, '3, 1'),
];
const rules = [
  { mode: 'fim', when: { regex: 'def per$' }, insert: 'imeter(self):\n        return 2 * (self.width + self.height)' },
  { mode: 'next_edit', when: { history: 'depth):' }, edits },
];
const settings = { 'breadcrumbs.enabled': false, 'workbench.activityBar.location': 'hidden', 'window.commandCenter': false };

const server = new CodeServer({ files: { 'ghost.py': TEXT, 'next.py': TEXT }, rules, settings });
let screen: Screen | undefined;
try {
  await server.start();
  screen = await Screen.open(server);
  const { page } = screen;
  const clip = { x: 0, y: 32, width: 740, height: 260 };
  const picture = (name: string) => page.screenshot({ path: `../../docs/vscode-${name}.png`, clip });
  const marks = async () => (await screen?.drawn() ?? []).filter(({ beside }) => beside).length;
  await screen.openFile('ghost.py', 8);
  await screen.keys('Control+b');
  await screen.type('    def per');
  await screen.until(() => screen?.ghost() ?? Promise.resolve(''), (text) => text !== '');
  await picture('ghost-text');
  await screen.keys('Control+b');
  await screen.openFile('next.py', 2, 37);
  await screen.keys('Control+b');
  await screen.type(', depth', 60);
  await screen.until(marks, 3);
  await picture('next-edit');
} finally {
  await screen?.close();
  server.stop();
}
