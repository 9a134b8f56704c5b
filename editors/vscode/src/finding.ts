/** Which command runs the server. Knows nothing of the editor: it is told what exists. */

import * as path from 'node:path';

export interface Surroundings {
  setting: string[];
  python: string | undefined; // interpreter of the active Python environment
  searchPath: string; // folders, as the variable PATH has them
  windows: boolean;
  exists: (file: string) => boolean;
}

export interface Found {
  command: string;
  args: string[];
  from: 'setting' | 'environment' | 'path';
}

/** The setting, else `redraft` beside the active interpreter, else `redraft` on the PATH. */
export function findServer(around: Surroundings): Found | undefined {
  const [command, ...args] = around.setting;
  if (command) return { command, args: args.length ? args : ['lsp'], from: 'setting' };
  const paths = around.windows ? path.win32 : path.posix;
  const name = around.windows ? 'redraft.exe' : 'redraft';
  if (around.python && paths.isAbsolute(around.python)) {
    const beside = paths.join(paths.dirname(around.python), name);
    if (around.exists(beside)) return { command: beside, args: ['lsp'], from: 'environment' };
  }
  for (const folder of around.searchPath.split(paths.delimiter)) {
    const file = paths.join(folder, name);
    // An entry that is not absolute would run what lies in the opened folder.
    if (paths.isAbsolute(folder) && around.exists(file)) {
      return { command: file, args: ['lsp'], from: 'path' };
    }
  }
  return undefined;
}
