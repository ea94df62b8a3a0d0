// What happened is marked in the charts of what it happened to: with its words, by keyboard, in the table, as a file.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { beyond } from './beyond.ts';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { refuse } from './furnish.ts';
import { end, enter, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button } = steps(() => browser);
const ESX = 'iqn.1998-01.com.vmware:esx01';

const marks = (title: string) => page().getByRole('toolbar', { name: `What happened, in ${title}` }).getByRole('button');
/** What the marks of a chart say, the oldest first. */
const said = (title: string) => marks(title).evaluateAll((all) => all.map((one) => one.getAttribute('aria-label') ?? ''));
const told = () => page().locator('.told');
const changed = /config_applied: changed: lun vm01/;
const refused = /login_refused: /;

describe('what happened', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('share', 'create', 'vm01', '--size', '64M', '--target', 'vms', '--for', ESX);
    daemon.run('share', 'create', 'other', '--size', '64M', '--target', 'vms', '--for', ESX);
    daemon.load(ESX, 11, 1, 'vms', 0, '-o4', '-w30', '-g400');
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  it('is marked as soon as it happens, in all charts of the node', async () => {
    await browser.go('/?span=60');
    await page().locator('canvas').nth(3).waitFor();
    daemon.run('lun', 'set', 'vm01', 'limit.iops=5000');
    refuse(daemon, 'iqn.2026-01.org.debian:unknown');
    for (const title of ['IOPS', 'Throughput', 'Latency of reads', 'Latency of writes']) {
      await until(`${title} has marks of both`, async () => {
        const all = (await said(title)).join(' ');
        return changed.test(all) && refused.test(all);
      });
    }
  });

  it('is marked after the page is opened anew, in the charts of what it happened to and in no others', async () => {
    await enter(browser, daemon.token);
    await browser.go('/luns/vm01?span=300');
    for (const title of ['IOPS', 'Stages of reads, p99']) {
      await until(`${title} has a mark of the change`, async () => changed.test((await said(title)).join(' ')));
      const all = (await said(title)).join(' ');
      assert.match(all, /node_started: node san-a started/);
      assert.doesNotMatch(all, refused);
    }
    await browser.go('/luns/other?span=300');
    await until('the restart is marked', async () => /node_started/.test((await said('IOPS')).join(' ')));
    assert.doesNotMatch((await said('IOPS')).join(' '), /limit|changed: lun vm01 \(/);
    await browser.go('/pools/default');
    await until('the restart is marked in the charts of the journal', async () => /node_started/.test((await said('Journal in use')).join(' ')));
    assert.doesNotMatch((await said('Journal in use')).join(' '), /config_applied|login_refused/);
  });

  it('is told at the mark, which keys reach, and hidden by Escape', async () => {
    await browser.go('/luns/vm01?span=300');
    await until('both are marked', async () => (await marks('IOPS').count()) > 0 && changed.test((await said('IOPS')).join(' ')));
    await page().getByRole('application', { name: /^IOPS/ }).focus();
    await page().keyboard.press('Tab');
    const newest = marks('IOPS').last();
    assert.equal(await newest.evaluate((one) => one === document.activeElement), true, 'the newest mark comes behind its chart');
    await told().getByText(/lun vm01/).first().waitFor();
    assert.match(await told().innerText(), /\d\d:\d\d:\d\d config_applied\s+changed: lun vm01 \(generation \d+\)/);
    assert.deepEqual(await browser.axeInBoth('a mark that is told', 'main'), []);
    await page().keyboard.press('Escape');
    await told().waitFor({ state: 'detached' });
    await page().keyboard.press('Home');
    assert.equal(await marks('IOPS').first().evaluate((one) => one === document.activeElement), true);
    // One stop for all marks of a chart: Tab goes on to what comes behind them.
    await page().keyboard.press('Tab');
    assert.equal(await page().evaluate(() => document.activeElement?.closest('[role=toolbar]') === null), true);
    await newest.hover();
    await told().waitFor();
    await told().hover();
    assert.equal(await told().count(), 1, 'the pointer may go to the text');
  });

  it('is one mark with a count where several would lie over each other', async () => {
    for (const n of [1, 2, 3, 4, 5]) refuse(daemon, `iqn.2026-01.org.debian:unknown${n}`);
    await browser.go('/?span=86400');
    await until('one mark has all of it', async () => {
      const all = await said('IOPS');
      return all.length === 1 && Number(/^(\d+) events\. /.exec(all[0] ?? '')?.[1]) > 6;
    });
    await until('its number is that of its words', async () => (await marks('IOPS').innerText()) === /^\d+/.exec((await said('IOPS'))[0] ?? '')?.[0]);
    await page().setViewportSize({ width: 390, height: 844 });
    await marks('IOPS').click();
    await told().getByText(/the last 6/).waitFor();
    assert.deepEqual(await page().evaluate(beyond), []);
    await page().setViewportSize({ width: 1280, height: 800 });
  });

  it('stands in the table of the chart, and in its file', async () => {
    await browser.go('/luns/vm01?span=300');
    await button('IOPS as a table').click();
    const row = page().getByRole('region', { name: /^IOPS,/ }).locator('tr.event', { hasText: 'config_applied' }).first();
    assert.match(await row.innerText(), /^\d\d:\d\d:\d\d\s+config_applied changed: lun vm01/);
    const [file] = await Promise.all([page().waitForEvent('download'), button('CSV of IOPS').click()]);
    const lines = readFileSync(await file.path(), 'utf8').split(/\r\n/);
    assert.deepEqual(lines[0]?.split(','), ['time', 'read', 'write', 'event', 'message']);
    assert.ok(lines.some((line) => /^\d{4}-.*Z,,,config_applied,changed: lun vm01/.test(line)), lines.slice(-3).join('\n'));
    const times = lines.slice(1).filter(Boolean).map((line) => line.split(',')[0] ?? '');
    assert.deepEqual(times, times.toSorted(), 'in the order in which it was');
    await button('IOPS as a chart').click();
  });
});
