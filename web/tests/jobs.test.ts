// Work that takes long: seen from every screen, followed, cancelled, and with its log.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, text, dialog, closed } = steps(() => browser);
const tray = () => page().getByRole('region', { name: 'Jobs', exact: true });
const bell = (name: RegExp) => page().getByRole('banner').getByRole('button', { name });
/** A scrub of so much takes many minutes, also where it is nearly all holes: those go by at 5 GiB/s. */
const LARGE = '8T';

const WEB = 'iqn.2026-01.org.debian:web';

interface Shown {
  id: number;
  state: string;
}
const jobs = () => JSON.parse(daemon.run('job', 'ls', '-o', 'json')) as Shown[];

describe('jobs', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('share', 'create', 'vm01', '--size', LARGE, '--target', 'vms', '--for', WEB);
    daemon.load(WEB, 41, 1, 'vms', 0, '-o4', '-g1000');
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
    await browser.go('/pools');
  });
  after(() => end(browser, daemon));

  it('says in the tray that there is none, and goes away by Escape', async () => {
    await bell(/^Jobs: none running$/).click();
    await tray().getByText('No job runs').waitFor();
    await page().waitForURL('**/pools?tray=jobs');
    await page().keyboard.press('Escape');
    await tray().waitFor({ state: 'detached' });
  });

  it('shows a scrub that was started elsewhere, on whatever screen', async () => {
    daemon.run('scrub', 'start', 'vm01');
    await bell(/^Jobs: 1 running$/).click();
    await tray().getByText('Scrub vm01').waitFor();
    await tray().getByText(/ of 8 TiB/).waitFor();
    assert.equal(await tray().getByRole('meter').count(), 1);
  });

  it('cancels it, with the same as a command line', async () => {
    await button(/^Cancel/).first().click();
    await text('causeway job cancel 1').waitFor({ state: 'attached' });
    await dialog().getByRole('button', { name: 'Cancel it' }).click();
    await closed();
    await tray().getByText('cancelled').waitFor();
    await bell(/^Jobs: none running$/).waitFor();
    assert.equal(jobs()[0]?.state, 'cancelled');
  });

  it('has all of them on a screen, filtered in the address, and one with its log', async () => {
    await tray().getByRole('link', { name: 'All jobs' }).click();
    await page().waitForURL('**/jobs');
    await button('finished').click();
    await text('No job fits the filter.').waitFor();
    await button('cancelled').click();
    await page().getByRole('link', { name: 'Scrub vm01' }).click();
    await page().getByRole('heading', { name: 'Scrub vm01' }).waitFor();
    await page().getByRole('region', { name: 'Its log' }).getByRole('listitem').first().waitFor();
    await page().getByRole('main').getByRole('link', { name: 'vm01' }).click();
    await page().waitForURL('**/luns/vm01');
  });
});
