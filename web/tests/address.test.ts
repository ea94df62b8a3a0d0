// The address is the state of the page: what it shows is sent to somebody by its address, and Back undoes it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { makeAnna, refuse } from './furnish.ts';
import { end, logInAs, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, field, dialog, closed, text } = steps(() => browser);

const WEB = 'iqn.2026-01.org.debian:web';
const STRANGER = 'iqn.2026-01.org.debian:stranger';
const at = () => page().url().slice(daemon.url.length);
const goes = (to: string) => page().waitForURL(daemon.url + to);

describe('the address', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('share', 'create', 'vm01', '--size', '64M', '--target', 'vms', '--for', WEB);
    daemon.load(WEB, 51, 1, 'vms', 0, '-o1', '-g200');
    refuse(daemon, STRANGER);
    makeAnna(daemon);
    browser = await Browser.open(daemon.url);
    // A login that a load of the page does not end.
    await logInAs(browser, 'anna', daemon.password);
  });
  after(() => end(browser, daemon));

  it('has each tab, span and what-if, and Back goes through them', async () => {
    await browser.go('/luns/vm01');
    await button('15 min').click();
    await button('All settings').click();
    await goes('/luns/vm01?span=900&show=settings');
    await page().goBack();
    await goes('/luns/vm01?span=900');
    await page().goBack();
    await goes('/luns/vm01');
    assert.equal(await button('15 min').getAttribute('aria-pressed'), 'false');
    await browser.go('/topology');
    await page().getByRole('button', { name: /^pool default/ }).press('Enter');
    await text(/Without pool default/).waitFor();
    await page().goBack();
    await text(/Without pool default/).waitFor({ state: 'detached' });
    await goes('/topology');
  });

  it('has dialogs: Back closes one, and does not open one that was closed', async () => {
    await browser.go('/pools');
    await browser.go('/hosts/web');
    await button('Settings').click();
    await goes('/hosts/web?do=set');
    await page().goBack();
    await closed();
    await goes('/hosts/web');
    await button('Rename').click();
    await dialog().getByRole('button', { name: 'Cancel', exact: true }).click();
    await closed();
    await goes('/hosts/web');
    // One step, not two: the dialog has left nothing behind.
    await page().goBack();
    await goes('/pools');
    await page().goForward();
    await goes('/hosts/web');
  });

  it('does not go back to a dialog whose change was made', async () => {
    await browser.go('/pools');
    await browser.go('/targets');
    await button('Add a target').click();
    await field('Name').fill('backup');
    await button('Add').click();
    await goes('/targets/backup');
    await page().goBack();
    await goes('/targets');
    assert.equal(await dialog().count(), 0);
    await page().goBack();
    await goes('/pools');
  });

  it('keeps what is typed letter by letter out of the history', async () => {
    await browser.go('/pools');
    await browser.go('/luns');
    await field('Filter LUNs').pressSequentially('vm01');
    await goes('/luns?q=vm01');
    await page().goBack();
    await goes('/pools');
  });

  it('opens each dialog for whoever is sent its address', async () => {
    const session = String((JSON.parse(daemon.run('session', 'ls', '-o', 'json')) as { id: number }[])[0]?.id);
    const all: [string, string][] = [
      [`/hosts?view=refused&do=allow&initiator=${encodeURIComponent(STRANGER)}`, 'Allow an initiator'],
      [`/hosts/web?do=end&session=${session}`, `End session ${session} of host web`],
      ['/luns/vm01?show=hosts&do=take&grant=web%3Avms%3Avm01', 'Take LUN vm01 away from host web'],
      ['/targets/vms?do=change&grant=web%3Avms%3Avm01', 'Change of grant web:vms:vm01'],
      ['/integrity?do=scrub&lun=vm01', 'Scrub LUN vm01'],
    ];
    for (const [path, title] of all) {
      await page().goto(path);
      await dialog(title).waitFor();
      await page().keyboard.press('Escape');
      await closed();
      assert.doesNotMatch(at(), /do=/);
    }
  });

  it('puts the dialogs of refused logins, sessions, grants and scrubs there, and takes them out', async () => {
    const all: [string, () => Promise<void>, RegExp][] = [
      ['/hosts?view=refused', () => button('Allow').first().click(), /do=allow&initiator=.+&target=iqn/],
      ['/luns/vm01?show=hosts', () => button('Take away web:vms:vm01').click(), /do=take&grant=/],
      ['/luns/vm01?show=hosts', () => button('Change web:vms:vm01').click(), /do=change&grant=/],
      ['/integrity', () => button('Scrub').first().click(), /do=scrub&lun=/],
    ];
    for (const [path, open, wanted] of all) {
      await browser.go(path);
      await open();
      await dialog().waitFor();
      assert.match(at(), wanted);
      await page().keyboard.press('Escape');
      await closed();
      await goes(path);
    }
  });

  it('has the sessions that are opened, and charts that are shown as tables', async () => {
    await browser.go('/hosts/web');
    await page().locator('summary', { hasText: '127.0.1.51' }).click();
    await text('MaxRecvDataSegmentLength(target)').waitFor();
    assert.match(at(), /\?open=\d+$/);
    await page().reload();
    await text('MaxRecvDataSegmentLength(target)').waitFor();
    await browser.go('/');
    await button('IOPS as a table').click();
    await goes('/?table=IOPS');
    await button('Throughput as a table').click();
    await page().reload();
    await page().getByRole('region', { name: /^Throughput, / }).waitFor();
    await button('IOPS as a chart').click();
    await goes('/?table=Throughput');
    await page().goBack();
    await page().getByRole('region', { name: /^IOPS, / }).waitFor();
  });
});
