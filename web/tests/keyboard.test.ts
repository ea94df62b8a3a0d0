// Everything by keyboard: each screen is walked through, and what people do is done without a pointer.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { everyDialog } from './dialogs.ts';
import { openFurnished, placesOf } from './furnish.ts';
import { end, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, field, text, dialog, closed } = steps(() => browser);

/** What can be used, and is seen. A closed `details` hides what is in it, also from Tab. */
const USABLE = 'a[href], button, input, select, textarea, summary, [tabindex]';
/** What gets the focus by scripts only, to be read from there: nothing is done with it. */
const BY_SCRIPT = 'main, h2';

interface Walked {
  /** How much there is, and what of it Tab does not come to. */
  there: number;
  missed: string[];
  unseen: string[];
}

/** Presses Tab until it is where it began, on the page or in the dialog that is open. */
async function walk(): Promise<Walked> {
  const unseen: string[] = [];
  const there = await page().evaluate(([usable, byScript]) => {
    (document.activeElement as HTMLElement | null)?.blur();
    const within = document.querySelector('dialog[open]') ?? document;
    const all = [...within.querySelectorAll<HTMLElement>(usable)].filter((one) => {
      if (!one.checkVisibility({ visibilityProperty: true }) || one.matches(':disabled') || one.matches(byScript)) return false;
      // Of buttons that are one choice, Tab comes to the chosen one.
      return !(one instanceof HTMLInputElement && one.type === 'radio' && !one.checked);
    });
    Object.assign(window, { usable: new Set(all), reached: new Set() });
    return all.length;
  }, [USABLE, BY_SCRIPT] as const);
  for (let n = 0; n < there + 60; n++) {
    await page().keyboard.press('Tab');
    const at = await page().evaluate(() => {
      const one = document.activeElement;
      // Between its end and its beginning the browser has its own.
      if (!one || one === document.body) return 'elsewhere';
      const { reached } = window as unknown as { reached: Set<Element> };
      if (reached.has(one)) return 'again';
      reached.add(one);
      const style = getComputedStyle(one);
      const shown = style.outlineStyle !== 'none' || style.boxShadow !== 'none' || one.matches('input[role=combobox]');
      return shown ? undefined : one.outerHTML.slice(0, 120);
    });
    if (at === 'again') break;
    if (at !== undefined && at !== 'elsewhere') unseen.push(at);
  }
  const missed = await page().evaluate(() => {
    const { usable, reached } = window as unknown as Record<'usable' | 'reached', Set<Element>>;
    // What a new list has replaced meanwhile is not there any more.
    return [...usable].filter((one) => !reached.has(one) && one.isConnected).map((one) => one.outerHTML.slice(0, 120));
  });
  return { there, missed, unseen };
}

describe('the keyboard', { skip }, () => {
  before(async () => {
    browser = await openFurnished(daemon);
  });
  after(() => end(browser, daemon));

  it('reaches all that each screen has, and the focus is seen', { timeout: 300_000 }, async () => {
    const wrong: string[] = [];
    for (const path of await placesOf(daemon)) {
      await browser.go(path);
      await browser.settled();
      const { there, missed, unseen } = await walk();
      wrong.push(...unseen.map((one) => `${path}: no focus is seen of ${one}`), ...missed.map((one) => `${path}: not reached: ${one}`));
      if (there <= 5) wrong.push(`${path}: there are only ${there}`);
    }
    assert.deepEqual(wrong, []);
  });

  it('stays in a dialog, reaches all of it, and Escape closes it', { timeout: 300_000 }, async () => {
    const wrong: string[] = [];
    await everyDialog(browser, daemon, async (what) => {
      const { missed, unseen } = await walk();
      wrong.push(...unseen.map((one) => `${what}: no focus is seen of ${one}`), ...missed.map((one) => `${what}: not reached: ${one}`));
      const within = await page().evaluate(() => document.activeElement === document.body || document.activeElement?.closest('dialog') !== null);
      if (!within) wrong.push(`${what}: the focus has left it`);
      await page().keyboard.press('Escape');
      await closed();
    });
    assert.deepEqual(wrong, []);
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
