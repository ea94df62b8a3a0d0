// What a phone shows: a bar of few screens with the way to all, tables that keep the figures that count, the topology as a
// list that has all of the map.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import type { Locator } from 'playwright-core';
import { Daemon, PORTALS } from './daemon.ts';
import { report } from './made_up.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
/** A pool that holds no LUN. */
const daemon = new Daemon(false, '[[pool]]\nname = "spare"\npath = "spare"\n');
let browser: Browser;
const { page, button } = steps(() => browser);
const WEB = 'iqn.2026-01.org.debian:web';
const bar = () => page().getByRole('navigation', { name: 'Screens' });

describe('on a phone', { skip }, () => {
  before(async () => {
    mkdirSync(join(daemon.dir, 'spare'));
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

  it('the disks of a pool stand in a line each, the worst first, with the way to who loses what', async () => {
    const { disks } = report();
    await page().route('**/api/v1/disks', (route) => route.fulfill({ json: disks }));
    await browser.go('/pools/default');
    const items = page().locator('dd.disks').first().getByRole('listitem');
    await items.nth(1).waitFor();
    const lines = await items.evaluateAll((all) => all.map((one) => ({
      text: one.textContent.trim().replaceAll(/\s+/g, ' '),
      tops: [...one.querySelectorAll('.state, a')].map((part) => Math.round(part.getBoundingClientRect().top + part.getBoundingClientRect().height / 2)),
    })));
    const own = disks.filter((disk) => disk.used_by?.includes('pool default'));
    assert.equal(lines.length, own.length);
    for (const { text, tops } of lines) assert.ok(Math.max(...tops) - Math.min(...tops) <= 2, `${text} is on several lines: ${tops.join()}`);
    const bad = lines.map(({ text }) => !text.includes(': well'));
    assert.ok(bad.includes(true) && bad.includes(false));
    assert.deepEqual(bad, bad.toSorted((a, b) => Number(b) - Number(a)), 'the worst first');
    await page().getByRole('link', { name: 'who loses what without sdd' }).click();
    await page().waitForURL('**/topology?lost=disk%3AZC10003');
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('a table that may scroll says so at its edge, and what can be done with a row stays in sight', async () => {
    await browser.go('/luns');
    const table = page().locator('.table.scroll').first();
    await table.waitFor();
    assert.match(await table.evaluate((one) => getComputedStyle(one).backgroundImage), /gradient/);
    await browser.go('/settings/earlier');
    const back = page().getByRole('button', { name: /^Go back/ }).first();
    await back.waitFor();
    const at = await back.boundingBox();
    assert.ok(at && at.x >= 0 && at.x + at.width <= 390, `it is at ${at?.x}`);
  });

  const list = () => page().locator('.tree');

  it('the topology is a list that has each part of the map, with its state and its figures', async () => {
    daemon.run('lun', 'create', 'nobodys', '--size', '16M');
    // The second portal and the second pool have nothing to do; a disk is failing.
    await page().route('**/api/v1/disks', (route) => route.fulfill({ json: [{ id: 'made-up', names: ['sdx'], health: 'failing', smart: 'read', facts: {}, used_by: ['pool default'] }] }));
    await page().setViewportSize({ width: 1280, height: 844 });
    await browser.go('/topology');
    const map = page().getByRole('group', { name: /^Map of/ });
    await map.getByRole('button', { name: /^disk sdx failing/ }).waitFor();
    await map.getByRole('button', { name: /^LUN nobodys granted to nobody/ }).waitFor();
    /** Its kind, its name and how it stands. */
    const said = async (box: Locator) => [...new Set(await box.locator('button[aria-pressed]').evaluateAll((all) => all.map((one) =>
      ['.faint, .unseen', '.name, strong', '.word, .says'].map((part) => one.querySelector(part)?.textContent?.trim() ?? '').join(' '))))].toSorted();
    const wanted = await said(map);
    const parts = ['node san-a ok', 'host web single path', 'LUN nobodys granted to nobody', 'LUN www online', 'pool spare has room', 'disk sdx failing', ...PORTALS.map((ip) => `portal ${ip}:${daemon.port} default`)];
    assert.deepEqual(parts.filter((one) => !wanted.includes(one)), [], `the map has ${wanted.join(', ')}`);
    await page().setViewportSize({ width: 390, height: 844 });
    await list().waitFor();
    assert.deepEqual(await said(list()), wanted);
    assert.equal(await page().evaluate(() => document.documentElement.scrollWidth), 390);
    const row = (name: RegExp) => list().getByRole('button', { name });
    for (const name of [/^host web single path, [\d.]+ [KM]iB\/s/, /^LUN www online, [\d.]+ [KM]iB\/s/, /^LUN nobodys granted to nobody/, /^pool spare has room/, /^disk sdx failing/]) await row(name).first().waitFor();
    await list().locator('li').filter({ hasText: PORTALS[1] ?? '' }).getByText('no session').first().waitFor();
    // Not by its colour alone: a square, where a disk that is well has a circle.
    const forms = (name: RegExp) => row(name).first().locator('.state').getAttribute('class');
    assert.match((await forms(/^disk sdx/)) ?? '', /\bbad\b/);
    assert.match((await forms(/^pool spare/)) ?? '', /\bgood\b/);
  });

  it('and asks there what would be lost without the node, by keyboard as well, and says it where it is seen', async () => {
    await list().getByRole('button', { name: /^node san-a/ }).press('Enter');
    const lost = page().getByRole('region', { name: 'What if it were lost' });
    await lost.getByText('Without node san-a, 1 host would lose 1 LUN.').waitFor();
    await list().getByRole('button', { name: /^LUN www lost/ }).first().waitFor();
    assert.equal(await list().getByRole('button', { name: /^node san-a/ }).getAttribute('aria-pressed'), 'true');
    const far = list().getByRole('button', { name: /^disk sdx/ }).last();
    await far.scrollIntoViewIfNeeded();
    await far.click();
    await lost.getByText('Without disk sdx, ').waitFor();
    const seen = await lost.boundingBox();
    assert.ok(seen && seen.y >= 0 && seen.y + seen.height <= 844, `it is seen at ${seen?.y}`);
    await list().getByRole('button', { name: /^session \d+/ }).first().click();
    await page().getByRole('region', { name: 'Sessions of this line' }).getByText(/^web: /).waitFor();
    assert.deepEqual(await browser.axeInBoth('the topology as a list, with an answer'), []);
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });
});
