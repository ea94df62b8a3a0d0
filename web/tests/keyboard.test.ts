// Everything by keyboard: each screen is walked through, and what people do is done without a pointer.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { openFurnished } from './furnish.ts';
import { DIALOGS, SCREENS } from './places.ts';
import { end, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, field, text, dialog, closed } = steps(() => browser);

/** What can be used on the page, or in the dialog that is open, and is seen. */
const usable = () => page().evaluate(() => {
  const within = document.querySelector('dialog[open]') ?? document;
  const all = within.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary, [tabindex="0"]');
  return [...all].filter((one) => one.checkVisibility() && !one.matches(':disabled')).length;
});

/** Presses Tab until it is where it began: how much was reached, and what has no visible focus. */
async function walk(most: number): Promise<{ reached: number; unseen: string[] }> {
  const seen = new Set<number>();
  const unseen: string[] = [];
  await page().evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    const global = window as unknown as { order: WeakMap<Element, number>; next: number };
    global.order = new WeakMap();
    global.next = 0;
  });
  for (let n = 0; n < most; n++) {
    await page().keyboard.press('Tab');
    const at = await page().evaluate(() => {
      const one = document.activeElement;
      if (!one || one === document.body) return undefined;
      const global = window as unknown as { order: WeakMap<Element, number>; next: number };
      if (!global.order.has(one)) global.order.set(one, global.next++);
      const style = getComputedStyle(one);
      const shown = style.outlineStyle !== 'none' || style.boxShadow !== 'none' || one.matches('input[role=combobox]');
      return { number: global.order.get(one) ?? 0, shown, html: one.outerHTML.slice(0, 120) };
    });
    // Between its end and its beginning the browser has its own.
    if (!at) continue;
    if (seen.has(at.number)) break;
    seen.add(at.number);
    if (!at.shown) unseen.push(at.html);
  }
  return { reached: seen.size, unseen };
}

describe('the keyboard', { skip }, () => {
  before(async () => {
    browser = await openFurnished(daemon);
  });
  after(() => end(browser, daemon));

  it('reaches all that each screen has, and the focus is seen', { timeout: 300_000 }, async () => {
    const wrong: string[] = [];
    for (const path of SCREENS) {
      await browser.go(path);
      await browser.settled();
      const there = await usable();
      const { reached, unseen } = await walk(there + 40);
      wrong.push(...unseen.map((one) => `${path}: no focus is seen of ${one}`));
      if (reached < there * 0.9 || there <= 5) wrong.push(`${path}: ${reached} of ${there} are reached`);
    }
    assert.deepEqual(wrong, []);
  });

  it('stays in a dialog, reaches all of it, and Escape goes back to where it was opened', { timeout: 120_000 }, async () => {
    for (const path of DIALOGS) {
      await browser.go(path);
      await dialog().waitFor();
      await browser.settled();
      const there = await usable();
      const { reached } = await walk(there + 10);
      assert.ok(reached >= there, `${path}: ${reached} of ${there} are reached`);
      assert.equal(await page().evaluate(() => document.activeElement === document.body || document.activeElement?.closest('dialog') !== null), true, path);
      await page().keyboard.press('Escape');
      await closed();
    }
  });

  it('makes a share without a pointer', async () => {
    await browser.go('/');
    await page().keyboard.press('Control+k');
    // The palette is loaded when it is asked for first.
    await page().getByRole('combobox').waitFor();
    await page().keyboard.type('create a share');
    await page().keyboard.press('Enter');
    await dialog('Create a share').waitFor();
    await field('Name').focus();
    await page().keyboard.type('by-keys');
    await page().keyboard.press('Tab');
    await page().keyboard.press('Control+a');
    await page().keyboard.type('64M');
    await page().keyboard.press('Tab');
    await page().keyboard.type('esx01');
    await text(/create lun\s+by-keys/).waitFor();
    await page().keyboard.press('Enter');
    await page().waitForURL('**/luns/by-keys?show=connect');
  });

  it('asks the map what would be lost without a pointer', async () => {
    await page().keyboard.press('g');
    await page().keyboard.press('t');
    await page().waitForURL('**/topology');
    // What the pointer has said of a line is said of the lines of a part that has the focus.
    const said = page().locator('[aria-live=polite]', { hasText: / → .*: all sessions of this portal, [\d.,]+ \S+\/s/ });
    assert.equal(await said.count(), 0);
    await page().getByRole('button', { name: /^portal 127\.0\.1\.1/ }).focus();
    await said.waitFor({ state: 'attached' });
    await page().getByRole('button', { name: /^pool default/ }).focus();
    await said.waitFor({ state: 'detached' });
    await page().keyboard.press('Space');
    await text(/Without pool default/).waitFor();
    await page().keyboard.press('Space');
    await text(/Without pool default/).waitFor({ state: 'detached' });
  });

  it('goes to every screen by g and a letter', async () => {
    const links = page().getByRole('navigation', { name: 'Screens' }).getByRole('listitem').getByRole('link');
    const all = await links.evaluateAll((found) => found.map((link) => [/\(g (\w)\)$/.exec((link as HTMLElement).title)?.[1] ?? '', link.getAttribute('href') ?? '']));
    assert.ok(all.length >= 15, `${all.length} screens`);
    assert.equal(new Set(all.map(([key]) => key)).size, all.length, 'each has a key of its own');
    for (const [key = '', path] of all) {
      await page().keyboard.press('g');
      await page().keyboard.press(key);
      await page().waitForURL((url) => url.pathname === path);
    }
  });

  it('skips to the content, and leaves letters that are typed alone', async () => {
    await page().goto('/luns');
    await page().getByRole('link', { name: 'vm01', exact: true }).waitFor();
    await page().keyboard.press('Tab');
    assert.equal(await page().evaluate(() => document.activeElement?.textContent), 'Skip to the content');
    await page().keyboard.press('Enter');
    await page().keyboard.press('/');
    await page().keyboard.type('gtgl');
    assert.equal(new URL(page().url()).pathname, '/luns');
    assert.equal(await field('Filter LUNs').inputValue(), 'gtgl');
  });
});
