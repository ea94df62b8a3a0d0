// Every dialog: it is accessible in both themes, fits a phone, and is used by keyboard alone.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { beyond, DESK, PHONE } from './beyond.ts';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { everyDialog, reached } from './dialogs.ts';
import { furnish } from './furnish.ts';
import { LONG_MS } from './patience.ts';
import { end, steps } from './steps.ts';
import { walk } from './walk.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, closed } = steps(() => browser);
const SOURCES = join(import.meta.dirname, '..', 'src');
/** The undo of a grant, which is offered where it was taken away; and a link of the lab, which is cut by a click. */
const WITHOUT_DIALOG = ['to host ${host} again', 'Link ${link}'];

function sources(which: RegExp): [path: string, text: string][] {
  return readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((path) => which.test(path)).map((path) => [path, readFileSync(join(SOURCES, path), 'utf8')]);
}

/** Of all changes that the page can make, as patterns, but for those that no dialog asks about. */
function titlesOfChanges(): RegExp[] {
  const found = sources(/^lib\/(?!.*\.test).*\.ts$/).flatMap(([, text]) =>
    [...text.matchAll(/\btitle: (['`])([^\n]*?)\1,[^\n]*\n?[^\n]*(?:verb|method):|\bset\([^\n]*(['`])([^\n]*?)\3, fields\)/g)].map((one) => one[2] ?? one[4] ?? ''),
  );
  assert.ok(found.length > 35, `${found.length} changes`);
  return found.filter((title) => !WITHOUT_DIALOG.some((part) => title.includes(part))).map((title) =>
    new RegExp(`^${title.split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/).map((part) => part.replace(/[.*+?^$()|[\]\\]/g, '\\$&')).join('.+')}$`));
}

describe('every dialog', { skip }, () => {
  before(async () => {
    await daemon.start();
    furnish(daemon);
    browser = await Browser.open(daemon.url);
  });
  after(() => end(browser, daemon));

  it('is in the list of dialogs, with each of its uses', () => {
    const found = reached();
    const missing = sources(/\.svelte$/).flatMap(([path, text]) => {
      const uses = [...text.matchAll(/<(Dialog|ChangeDialog|Conflict|Login)\b/g)].length;
      const component = path.replace(/\.svelte$/, '').replace(/^screens\//, '');
      // What shows the login is the page itself, at any place; a form of settings is no dialog, and objects.test.ts shows its conflict.
      return uses > (found.get(component) ?? 0) && !['App.svelte', 'parts/SettingForm.svelte'].includes(path) ? [`${component}: ${uses} uses`] : [];
    });
    assert.deepEqual(missing, []);
  });

  it('is come to, and each change has one', { timeout: LONG_MS }, async () => {
    await everyDialog(browser, daemon, look);
    // A change whose dialog this has not come to.
    assert.deepEqual(titlesOfChanges().filter((pattern) => !titles.some((title) => pattern.test(title))).map(String), []);
  });
  it('is accessible (WCAG 2.2 AA) in both themes', () => assert.deepEqual(found.axe, []));
  it('fits a phone', () => assert.deepEqual(found.phone, []));
  it('keeps the focus, which is seen and reaches all of it, and is closed by Escape', () => assert.deepEqual(found.keys, []));
});

/** What is wrong, each with where: all of them are asked for everything while they are shown once. */
const found = { axe: [] as string[], phone: [] as string[], keys: [] as string[] };
const titles: string[] = [];

async function look(what: string, title: string): Promise<void> {
  titles.push(title);
  found.axe.push(...(await browser.axeInBoth(what, 'dialog')));
  await page().setViewportSize(PHONE);
  // Charts learn their width from what is drawn around them.
  await page().evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  found.phone.push(...(await page().evaluate(beyond)).map((one) => `${what}: ${one}`));
  await page().setViewportSize(DESK);
  const { missed, unseen } = await walk(page());
  found.keys.push(...unseen.map((one) => `${what}: no focus is seen of ${one}`), ...missed.map((one) => `${what}: not reached: ${one}`));
  const within = await page().evaluate(() => document.activeElement === document.body || document.activeElement?.closest('dialog') !== null);
  if (!within) found.keys.push(`${what}: the focus has left it`);
  await page().keyboard.press('Escape');
  await closed();
}
