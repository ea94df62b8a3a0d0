// What a phone shows: a bar of few screens with the way to all, tables that keep the figures that count.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button } = steps(() => browser);
const WEB = 'iqn.2026-01.org.debian:web';
const bar = () => page().getByRole('navigation', { name: 'Screens' });

describe('on a phone', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('host', 'create', 'web', '--iqn', WEB);
    daemon.run('share', 'create', 'www', '--size', '64M', '--target', 'vms', '--for', 'web');
    browser = await Browser.open(daemon.url, 'dark', 390, 844);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  it('the bar has four screens and the way to all of them, also by keyboard', async () => {
    assert.equal(await bar().getByRole('link').count(), 4);
    const more = button('More');
    await more.press('Enter');
    await bar().getByRole('link', { name: 'Audit' }).waitFor();
    await page().keyboard.press('Escape');
    await bar().getByRole('link', { name: 'Audit' }).waitFor({ state: 'hidden' });
    assert.equal(await more.evaluate((one) => one === document.activeElement), true);
    await more.click();
    await bar().getByRole('link', { name: 'Audit' }).click();
    await page().waitForURL('**/audit');
    await bar().getByRole('link', { name: 'Audit' }).waitFor({ state: 'hidden' });
    assert.equal(await more.getAttribute('aria-expanded'), 'false');
  });

  it('the table of LUNs keeps throughput and p99, in a second line', async () => {
    daemon.load(WEB, 21, 1, 'vms', 0, '-o1', '-g400');
    await browser.go('/luns');
    const row = page().getByRole('row', { name: /www/ });
    await row.getByText(/^[\d.]+ [KM]iB\/s · p99 [\d.]+ (µs|ms|s)$/).waitFor();
    assert.equal(await page().evaluate(() => document.documentElement.scrollWidth), 390);
  });
});
