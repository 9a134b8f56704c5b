/** Writes the licences of all packages that the bundle contains, as dist/meta.json lists them. */

import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';

const { inputs } = JSON.parse(readFileSync('dist/meta.json', 'utf8'));
const folders = Object.keys(inputs).map((file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
const notices = [...new Set(folders)].filter(Boolean).sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
  if (!file || !existsSync(path.join(folder, file))) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(path.join(folder, file), 'utf8').trim()}\n`;
});
const heading = 'The extension contains the following packages, under the licences that follow each name.\n';
writeFileSync('ThirdPartyNotices.txt', [heading, ...notices].join(`\n${'-'.repeat(80)}\n\n`));
