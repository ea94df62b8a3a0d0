// Everything by keyboard: each screen is walked through, and what people do is done without a pointer.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { openFurnished, placesOf } from './furnish.ts';
import { LONG_MS } from './patience.ts';
import { end, steps } from './steps.ts';
import { walk } from './walk.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, field, text, dialog } = steps(() => browser);

describe('the keyboard', { skip }, () => {
  before(async () => {
    browser = await openFurnished(daemon);
  });
  after(() => end(browser, daemon));

  it('reaches all that each screen has, and the focus is seen', { timeout: LONG_MS }, async () => {
    const wrong: string[] = [];
    for (const path of await placesOf(daemon)) {
      await browser.go(path);
      await browser.settled();
      const { there, missed, unseen } = await walk(page());
      wrong.push(...unseen.map((one) => `${path}: no focus is seen of ${one}`), ...missed.map((one) => `${path}: not reached: ${one}`));
      if (there <= 5) wrong.push(`${path}: there are only ${there}`);
    }
    assert.deepEqual(wrong, []);
  });

  it('is walked so that what it does not reach is found, and where no focus is seen', async () => {
    await browser.go('/targets');
    await browser.settled();
    const links = page().getByRole('navigation', { name: 'Screens' }).getByRole('listitem').getByRole('link');
    await links.nth(1).evaluate((link) => link.style.setProperty('outline', 'none', 'important'));
    await links.nth(2).evaluate((link) => (link.tabIndex = -1));
    const { missed, unseen } = await walk(page());
    assert.deepEqual([missed.length, unseen.length], [1, 1], [...missed, ...unseen].join('\n'));
    await page().goto('/');
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
