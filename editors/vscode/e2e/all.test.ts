/** One VS Code in one browser for nearly all tests, and one that lacks the server: `make test-vscode-e2e`. */

import { after, before, describe } from 'node:test';
import { CodeServer, findChromium, findCodeServer } from './codeServer';
import * as ghost from './ghostText';
import * as next from './nextEdit';
import { Screen } from './screen';
import { setUp } from './setUp';
import * as status from './statusBar';

export interface Session {
  server: CodeServer;
  screen: Screen;
}

const found = findCodeServer();
const missing = typeof found === 'string' ? found : findChromium() ? undefined : 'no /usr/bin/chromium';

describe('in a real VS Code', { skip: missing }, () => {
  const now = {} as Session;
  before(async () => {
    now.server = new CodeServer({
      rules: [...ghost.rules, ...next.rules, ...status.rules],
      files: { ...ghost.files, ...next.files, ...status.files },
    });
    await now.server.start();
    now.screen = await Screen.open(now.server);
  });
  after(async () => {
    await now.screen.close();
    now.server.stop();
  });
  ghost.ghostText(now);
  next.nextEdit(now);
  status.statusBar(now);
});

describe('in a VS Code without the server', { skip: missing }, setUp);
