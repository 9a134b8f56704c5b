import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe, statusText, toggled, withoutServer } from '../src/describing';
import { findServer, type Surroundings } from '../src/finding';

function around(files: string[], more: Partial<Surroundings> = {}): Surroundings {
  return {
    setting: [], python: undefined, searchPath: '/a:/b', windows: false,
    exists: (file) => files.includes(file), ...more,
  };
}

test('the setting wins, and lsp is its default argument', () => {
  const found = findServer(around(['/a/redraft'], { setting: ['/mine/redraft'] }));
  assert.deepEqual(found, { command: '/mine/redraft', args: ['lsp'], from: 'setting' });
});
test('the active environment comes before the PATH', () => {
  const found = findServer(around(['/a/redraft', '/v/bin/redraft'], { python: '/v/bin/python' }));
  assert.equal(found?.command, '/v/bin/redraft');
});
test('the PATH in its order, without entries that are not absolute', () => {
  assert.equal(findServer(around(['/b/redraft', 'redraft'], { searchPath: ':.:/a:/b' }))?.command, '/b/redraft');
  assert.equal(findServer(around(['redraft'], { searchPath: ':.' })), undefined);
});
test('Windows names', () => {
  const found = findServer(around(['C:\\v\\Scripts\\redraft.exe'], { windows: true, python: 'C:\\v\\Scripts\\python.exe' }));
  assert.equal(found?.command, 'C:\\v\\Scripts\\redraft.exe');
});
test('the status bar tells states apart', () => {
  const well = { running: true, starting: false, missing: false, enabled: true, languageEnabled: true, snoozedUntil: undefined, status: undefined };
  assert.equal(statusText(well), '$(edit-sparkle) Redraft');
  assert.equal(statusText({ ...well, running: false }), '$(error) Redraft');
  assert.equal(statusText({ ...well, running: false, starting: true }), '$(loading~spin) Redraft');
  assert.equal(statusText({ ...well, snoozedUntil: 1 }), '$(bell-slash) Redraft');
  assert.equal(statusText({ ...well, languageEnabled: false }), '$(circle-slash) Redraft');
  assert.equal(statusText({ ...well, status: { busy: false, kind: 'Error', message: '' } }), '$(error) Redraft');
});
test('why nothing comes without a server', () => {
  assert.equal(withoutServer({ starting: true, missing: false }), 'the server starts');
  assert.equal(withoutServer({ starting: false, missing: true }), 'the command `redraft` was not found');
  assert.equal(withoutServer({ starting: false, missing: false }), 'the server is not running');
});
test('the description leaves out what is not known', () => {
  const report = { version: '1', state: 'ready', message: '', model: 'm', device: '', lastReason: 'unsure', lastLatencyMs: 12.6 };
  assert.equal(describe(report), 'Redraft 1, ready, model m, last answer in 13 ms, last silence: unsure');
});
test('toggling a language', () => {
  assert.deepEqual(toggled(['a', 'b'], 'a'), ['b']);
  assert.deepEqual(toggled(['a'], 'b'), ['a', 'b']);
});
