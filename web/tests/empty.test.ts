// A node on which nothing is: each screen says why it is empty, and the one next step; that step leads somewhere.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { SCREENS } from './places.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page } = steps(() => browser);
/** Screens, and not one of their objects, of which there is none. */
const PLACES = [...SCREENS.filter((path) => !/\/(luns|hosts|targets|bench|lab|jobs|disks|alerts)\/|first-run|entry=|session=|lost=|nothing-here/.test(path)), '/jobs?q=none', '/luns?q=none'];
const ALL_IS_WELL = /Nothing to do\.$/;

interface Nothing {
  says: string;
  steps: string[];
  hrefs: string[];
}
const nothings = (): Promise<Nothing[]> => page().locator('.empty').evaluateAll((all) => all.map((one) => ({
  says: one.querySelector('p')?.textContent.trim() ?? '',
  steps: [...one.querySelectorAll('a, button')].map((step) => step.textContent.trim()),
  hrefs: [...one.querySelectorAll('a')].map((link) => link.getAttribute('href') ?? ''),
})));

describe('a node on which nothing is', { skip }, () => {
  const found = new Map<string, Nothing[]>();
  before(async () => {
    await daemon.start();
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  it('says on each screen the one next step, or that there is none', async () => {
    for (const path of PLACES) {
      await browser.go(path);
      await page().locator('main h1').first().waitFor();
      await browser.settled();
      // What is asked for is there, or the daemon has said that there is none.
      await page().locator('.empty', { hasText: '…' }).first().waitFor({ state: 'detached' });
      found.set(path, await nothings());
    }
    const without = [...found].flatMap(([path, all]) => all.filter(({ says, steps }) => steps.length !== 1 && !(steps.length === 0 && ALL_IS_WELL.test(says))).map(({ says, steps }) => `${path}: ${says} ${steps.join(', ')}`));
    assert.deepEqual(without, []);
    // Those that are empty on a new node: none of them was overlooked because it was drawn too late.
    const empty = [...found].filter(([, all]) => all.length > 0).map(([path]) => path);
    for (const path of ['/topology', '/topology?as=list', '/luns', '/hosts', '/hosts?view=paths', '/hosts?view=sessions', '/hosts?view=refused', '/targets', '/pools', '/integrity', '/bench', '/jobs', '/alerts', '/alerts?show=over', '/alerts?show=silences', '/alerts?show=receivers']) assert.ok(empty.includes(path), `${path} shows nothing that is empty: ${empty.join(' ')}`);
  });

  it('leads by each of them to something that is there', async () => {
    const hrefs = [...new Set([...found.values()].flat().flatMap((one) => one.hrefs))];
    assert.ok(hrefs.length >= 5, hrefs.join(' '));
    for (const href of hrefs) {
      await browser.go(href);
      await browser.settled();
      assert.equal(await page().getByRole('heading', { name: 'Nothing is at this address' }).count(), 0, href);
      if (/do=/.test(href)) await page().getByRole('dialog').first().waitFor();
      else await page().locator('main h1').first().waitFor();
    }
  });

  it('shows all again where a filter hides everything', async () => {
    daemon.run('lun', 'create', 'vm01', '--size', '16M');
    await browser.go('/integrity?q=none');
    await page().getByRole('button', { name: 'Show all' }).click();
    await page().waitForURL('**/integrity');
    await page().getByRole('link', { name: 'vm01' }).first().waitFor();
  });
});
