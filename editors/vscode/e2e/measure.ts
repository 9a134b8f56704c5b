/**
 * How long from a key to ghost text on the screen, with the embedded model: `npm run measure`.
 * At the end of each unfinished line one key is typed; the page itself takes the times.
 */

import { CodeServer } from './codeServer';
import { Screen } from './screen';

const LINES: [string, string][] = [
  ['def add(a, b):\n    retur', 'n'],
  ['def area(width, height):\n    return widt', 'h'],
  ['import os\nimport sy', 's'],
  ['for i in range(10)', ':'],
  ['numbers = [1, 2, 3]\ntotal = sum(', 'n'],
  ['with open(path) as f', 'i'],
  ['class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.', 'y'],
  ['try:\n    value = int(text)\nexcept ', 'V'],
  ['def greet(name):\n    print(f"Hello, {', 'n'],
  ['if __name__ == "__mai', 'n'],
  ['names = ["a", "b"]\nfor name in ', 'n'],
  ['def is_even(number):\n    return number % ', '2'],
  ['class Stack:\n    def __init__(self):\n        self.items = [', ']'],
  ['def read(path):\n    with open(path) as file:\n        return file.', 'r'],
  ['squares = [x * x for x i', 'n'],
  ['def main():\n    pars', 'e'],
  ['import json\n\ndata = json.', 'l'],
  ['while Tru', 'e'],
  ['assert len(items) =', '='],
  ['raise ValueError(', '"'],
];
const PATIENCE_MS = 4000;
const name = (index: number) => `line${String(index).padStart(2, '0')}.py`;

/** Milliseconds from the next key to ghost text, or undefined when none comes. */
async function fromKeyToGhost(screen: Screen, key: string): Promise<number | undefined> {
  const seen = screen.page.evaluate((patience) => new Promise<number | undefined>((resolve) => {
    addEventListener('keydown', () => {
      const began = performance.now();
      const look = () => {
        const now = performance.now();
        if (document.querySelector('.editor-instance [class*="ghost-text"]')) resolve(now - began);
        else if (now - began > patience) resolve(undefined);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, { capture: true, once: true });
  }), PATIENCE_MS);
  await screen.page.waitForTimeout(50);
  await screen.type(key);
  return seen;
}

async function main(): Promise<void> {
  const files = Object.fromEntries(LINES.map(([text], index) => [name(index), text]));
  const server = new CodeServer({ files, settings: { 'redraft.gate': process.argv[2] ?? 'balanced', 'redraft.debounceMs': 60 } });
  let screen: Screen | undefined;
  try {
    await server.start();
    screen = await Screen.open(server);
    const times: number[] = [];
    for (const [index, [text, key]] of LINES.entries()) {
      const last = text.split('\n');
      await screen.openFile(name(index), last.length, (last.at(-1) ?? '').length + 1);
      await screen.page.waitForTimeout(1500); // what opening the file has asked is answered
      await screen.keys('Escape');
      const time = await fromKeyToGhost(screen, key);
      const ghost = JSON.stringify(await screen.ghost());
      console.log(`${JSON.stringify((last.at(-1) ?? '') + key)} ${time === undefined ? 'nothing' : `${time.toFixed(0)} ms ${ghost}`}`);
      if (time !== undefined) times.push(time);
    }
    times.sort((a, b) => a - b);
    const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))]?.toFixed(0) ?? '-';
    console.log(`${times.length} of ${LINES.length} keys: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`);
    console.log((await screen.menu()).join(' | '));
    await screen.choose('Last reason for silence');
    console.log(await screen.until(() => screen?.notification() ?? Promise.resolve(''), (text) => text !== ''));
  } finally {
    await screen?.close();
    server.stop();
  }
}

await main();
