/** The editor as a user sees and handles it: keys in, what is drawn out. Knows nothing of Redraft's inside. */

import { readFileSync } from 'node:fs';
import { type Browser, type Page, chromium } from 'playwright-core';
import { type CodeServer, findChromium } from './codeServer';

const PATIENCE_MS = 30_000;

/** One line as it is drawn: its text with everything in it, the parts struck through, the text put beside it. */
export interface DrawnLine {
  text: string;
  struck: string;
  beside: string;
}

export class Screen {
  private constructor(
    readonly page: Page,
    private readonly browser: Browser,
    private readonly server: CodeServer,
  ) {}

  static async open(server: CodeServer, icon = 'edit-sparkle'): Promise<Screen> {
    const executablePath = findChromium();
    if (!executablePath) throw new Error('no chromium');
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    const page = await browser.newPage({ viewport: { width: 900, height: 720 } });
    await page.goto(`${server.url}/?folder=${server.workspace}`, { timeout: 120_000 });
    const screen = new Screen(page, browser, server);
    await screen.until(() => screen.status(), (status) => status.startsWith(icon), 180_000);
    return screen;
  }

  async close(): Promise<void> {
    await this.browser.close();
  }

  /** Open a file of the workspace, with the cursor at `line`:`column`, counted from 1. */
  async openFile(name: string, line = 1, column = 1): Promise<void> {
    await this.page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).dblclick();
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor({ timeout: PATIENCE_MS });
    await this.page.locator('.editor-instance .monaco-editor.focused').waitFor({ timeout: PATIENCE_MS });
    await this.keys('Control+g');
    await this.page.locator('.quick-input-widget input').waitFor({ timeout: PATIENCE_MS });
    await this.type(`${line}:${column}`);
    await this.keys('Enter');
    await this.page.locator('.quick-input-widget').waitFor({ state: 'hidden', timeout: PATIENCE_MS });
    await this.until(() => this.cursor(), `${line}:${column}`);
  }

  async keys(...keys: string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async type(text: string, delay = 0): Promise<void> {
    await this.page.keyboard.type(text, { delay });
  }

  /** Run a command by its title in the palette. */
  async command(title: string): Promise<void> {
    await this.keys('F1');
    await this.page.locator('.quick-input-widget input').waitFor({ timeout: 8000 });
    await this.type(title);
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first().click();
  }

  /** `line:column` of the cursor, counted from 1. */
  async cursor(): Promise<string> {
    const text = await this.page.locator('[id="status.editor.selection"]').textContent();
    const [, line, column] = /Ln (\d+), Col (\d+)/.exec(text ?? '') ?? [];
    return `${line ?? '?'}:${column ?? '?'}`;
  }

  /** Save, and wait until the file has this text. */
  async expectText(name: string, text: string): Promise<void> {
    await this.keys('Control+s');
    await this.until(() => Promise.resolve(readFileSync(this.server.file(name), 'utf8')), text);
  }

  /** All ghost text, a line break for each of its lines. */
  async ghost(): Promise<string> {
    return this.page.evaluate(() => {
      const inline = [...document.querySelectorAll('.editor-instance .view-lines [class*="ghost-text-decoration"]')];
      const below = [...document.querySelectorAll('.editor-instance .suggest-preview-text .view-line, .editor-instance .suggest-preview-text > div')];
      const text = (nodes: Element[]) => nodes.map((node) => node.textContent).join('');
      return [text(inline), ...below.map((node) => node.textContent)].join('\n').trimEnd().replaceAll('\u00a0', ' ');
    });
  }

  /** The visible lines, from top to bottom. */
  async drawn(): Promise<DrawnLine[]> {
    return this.page.evaluate(() => {
      const top = (node: HTMLElement) => Number.parseFloat(node.style.top);
      const all = [...document.querySelectorAll<HTMLElement>('.editor-instance .lines-content > .view-lines > .view-line')];
      return all.sort((a, b) => top(a) - top(b)).map((line) => {
        const spans = [...line.querySelectorAll('span span')];
        const struck = spans.filter((span) => getComputedStyle(span).textDecorationLine === 'line-through');
        const contents = spans.map((span) => getComputedStyle(span, '::after').content);
        const literal = contents.filter((content) => content.startsWith('"')).map((content) => content.slice(1, -1));
        const beside = literal.map((content) => content.replaceAll('\\a ', '\n').replaceAll(/\\(.)/g, '$1')); // as CSS writes strings
        const plain = (parts: (string | null)[]) => parts.join('').replaceAll('\u00a0', ' ');
        return { text: plain([line.textContent]), struck: plain(struck.map((s) => s.textContent)), beside: plain(beside) };
      });
    });
  }

  /** The icon and the text of the status bar item. */
  async status(): Promise<string> {
    const item = this.page.locator('[id="redraft.redraft.redraft"]');
    return (await item.count()) ? ((await item.getAttribute('aria-label')) ?? '') : '';
  }

  /** Open the menu of the status bar item; gives each entry as `label` or `label: description`. */
  async menu(): Promise<string[]> {
    await this.page.locator('[id="redraft.redraft.redraft"] a').click();
    await this.page.locator('.quick-input-widget input[placeholder="Redraft"]').waitFor({ timeout: PATIENCE_MS });
    const rows = this.page.locator('.quick-input-list .monaco-list-row');
    const look = () => rows.evaluateAll((all) => all.map((row) => row.getAttribute('aria-label') ?? ''));
    const all = await this.until(look, (labels) => labels.length > 1 && labels.includes('Show the log'));
    return all.map((label) => label.replace(', ', ': '));
  }

  async choose(entry: string): Promise<void> {
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: entry }).first().click();
  }

  async notification(): Promise<string> {
    return (await this.page.locator('.notification-list-item-message').allInnerTexts()).join('\n');
  }

  /** Wait until `look` gives `wanted`; tells what it gave last. */
  async until<T>(look: () => Promise<T>, wanted: T | ((seen: T) => boolean), patience = PATIENCE_MS): Promise<T> {
    const ends = Date.now() + patience;
    const fits = (seen: T) =>
      typeof wanted === 'function' ? (wanted as (seen: T) => boolean)(seen) : JSON.stringify(seen) === JSON.stringify(wanted);
    for (;;) {
      const seen = await look();
      if (fits(seen)) return seen;
      if (Date.now() > ends) throw new Error(`waited for ${String(wanted)}, saw ${JSON.stringify(seen)}`);
      await this.page.waitForTimeout(30);
    }
  }
}
