// From what the page says of paths to what is so: hosts on two targets, paths that are all cut, a path that is slow.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Session, Status } from '../src/api/types.ts';
import { Browser, here } from './browser.ts';
import { Daemon, PORTALS, type Relay } from './daemon.ts';
import { logIn } from './furnish.ts';
import { end, enter, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
let relay: Relay;
const { page, button, link, text, dialog, closed } = steps(() => browser);
const BOTH = 'iqn.2026-01.org.debian:both';
const ONE = 'iqn.2026-01.org.debian:one';
const SLOW = 'iqn.2026-01.org.debian:slow';
const STRANGER = 'iqn.2026-01.org.debian:stranger';
/** A command of 256 KiB takes a second over it: longer than any disk of a test machine does. */
const SLOW_BYTES = 256 * 1024;
const band = () => page().getByRole('region', { name: 'How the node is' });

describe('paths', { skip }, () => {
  before(async () => {
    await daemon.start();
    for (const [name, iqn] of [['both', BOTH], ['slow', SLOW], ['one', ONE]] as const) daemon.run('host', 'create', name, '--iqn', iqn);
    for (const [lun, target, host] of [['left', 'left', 'both'], ['right', 'right', 'both'], ['archive', 'vms', 'slow']] as const) {
      daemon.run('share', 'create', lun, '--size', '64M', '--target', target, '--for', host);
    }
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  it('of a host on two targets are asked of each: one target over one portal alone is lost with it', async () => {
    daemon.load(BOTH, 31, 2, 'left', 0, '-o1', '-g200');
    daemon.load(BOTH, 32, 1, 'right', 0, '-o1', '-g200');
    await browser.go('/topology');
    await page().getByRole('button', { name: /^host both single path/ }).waitFor();
    await page().getByRole('button', { name: new RegExp(`^portal ${PORTALS[0]}`) }).press('Enter');
    await text(/Without portal 127\.0\.1\.1:\d+, 1 host would lose 1 LUN\./).waitFor();
    await page().getByRole('region', { name: 'What if it were lost' }).getByText('loses right', { exact: true }).waitFor();
    await browser.go('/');
    await band().getByText('Host both has a single path: log it in to a second portal.').waitFor();
  });

  it('that are slow are found from the LUN by clicks: its slowest session, the map, the host', async () => {
    relay = await daemon.relay(99);
    relay.slow(SLOW_BYTES);
    daemon.loadOver(relay, SLOW, 33, 'vms', 0, '-o4', '-w100', '-b256K', '-g8000', '--no-plan', '--policy', 'round-robin:1');
    await browser.go('/');
    await link('archive').first().click();
    await button('Hosts').click();
    const table = page().getByRole('region', { name: 'Sessions that have it' });
    // The way over the relay, whose address the node sees.
    const slowest = table.getByRole('row').nth(1).filter({ hasText: /127\.0\.2\.99\) → 127\.0\.2\.1:\d+/ });
    await slowest.getByRole('cell', { name: /^([1-9]\d{2} ms|[\d.]+ s)$/ }).first().waitFor();
    await slowest.getByRole('link', { name: /^On the map/ }).click();
    const path = page().getByRole('region', { name: 'Sessions of this line' });
    await path.getByText(/^slow: .*127\.0\.2\.99.* → 127\.0\.2\.1:\d+/).waitFor();
    await path.getByText(/^p99 ([1-9]\d{2} ms|[\d.]+ s)/).waitFor();
    await page().locator('.edge.near').first().waitFor({ state: 'attached' });
    // A click on a line of the map opens its sessions as well.
    await path.getByRole('button', { name: 'Close' }).click();
    await path.waitFor({ state: 'detached' });
    await page().locator('.hit').filter({ hasText: /→ 127\.0\.2\.1:\d+: session \d+, .*p99/ }).first().dispatchEvent('click');
    await path.getByRole('link', { name: /→ 127\.0\.2\.1:/ }).first().click();
    await page().waitForURL(/\/hosts\/\w+\?session=\d+/);
    await text('MaxRecvDataSegmentLength').first().waitFor();
    // A line without sessions leads to what it is of, and the hand of the pointer is where a click does something.
    await browser.go('/topology');
    const ofLun = page().locator('.hit').filter({ hasText: /^LUN archive → |^archive → / }).first();
    assert.equal(await ofLun.evaluate((one) => getComputedStyle(one).cursor), 'pointer');
    await ofLun.dispatchEvent('click');
    await page().waitForURL('**/luns/archive');
  });

  it('that are cut keep their place on the map, as lost, and nothing else moves; mended, they are there again', async () => {
    await browser.go('/topology');
    // Two of its NICs go over the relay.
    const lost = () => page().locator('[role=group] .edge.bad + .hit').filter({ hasText: /→ 127\.0\.2\.1:\d+: lost since \d\d:\d\d/ }).count();
    await page().locator('.hit').filter({ hasText: /→ 127\.0\.2\.1:\d+: session \d+/ }).first().waitFor({ state: 'attached' });
    assert.equal(await lost(), 0);
    const places = () => page().locator('.point').evaluateAll((all) => all.map((one) => `${one.querySelector('.name')?.textContent}: ${one.getAttribute('style')}`));
    const before = await places();
    relay.cut();
    await until('both are lost', async () => (await lost()) === 2, 30_000);
    assert.deepEqual(await places(), before);
    await relay.mend();
    await until('it is there again', async () => (await lost()) === 0, 60_000);
  });

  it('that are all cut are said on the first page, with the way to their host', async () => {
    const both: [Relay, Relay] = [await daemon.relay(97, 1), await daemon.relay(97, 2)];
    daemon.run('grant', 'create', 'one', 'left', '--target', 'left');
    daemon.loadBy(both, ONE, 34, 'left', 0, '-o1', '-g200');
    await browser.go('/');
    const gone = link('1 of 3 hosts that have grants is not connected: one.');
    await gone.waitFor();
    await gone.waitFor({ state: 'detached' });
    for (const one of both) one.cut();
    await gone.waitFor();
    assert.doesNotMatch((await band().textContent()) ?? '', /All data safe/);
    await gone.click();
    await page().waitForURL('**/hosts/one');
    for (const one of both) await one.mend();
  });

  it('are refused with a wrong secret, which a grant does not cure: the page leads to CHAP', async () => {
    const secret = join(daemon.dir, 'secret');
    writeFileSync(secret, 'a-long-secret-of-16', { mode: 0o600 });
    daemon.run('host', 'set', 'one', 'chap.user=one', `chap.secret_file=${secret}`);
    assert.notEqual(logIn(daemon, 'left', ONE), 0);
    await browser.go('/hosts?view=refused');
    const refused = page().getByRole('listitem').filter({ hasText: 'CWY2002' }).first();
    await refused.getByText('user and secret must be the same on both sides', { exact: false }).waitFor();
    assert.equal(await refused.getByRole('button', { name: 'Allow' }).count(), 0);
    await refused.getByRole('link', { name: 'Set CHAP' }).click();
    await dialog('Settings of host one').waitFor();
    await page().keyboard.press('Escape');
  });

  it('are allowed what their host has already, by one click and its confirmation', async () => {
    assert.notEqual(logIn(daemon, 'vms', BOTH), 0);
    await browser.go('/hosts?view=refused');
    await page().getByRole('listitem').filter({ hasText: BOTH }).getByRole('button', { name: 'Allow' }).click();
    await text('causeway grant create both left --target vms && causeway grant create both right --target vms').waitFor({ state: 'attached' });
    await dialog().getByRole('button', { name: 'Allow', exact: true }).click();
    await closed();
    await page().getByRole('listitem').filter({ hasText: BOTH }).getByText('It may log in by now, as host both.').waitFor();
    assert.equal(logIn(daemon, 'vms', BOTH), 0);
  });

  it('are allowed at the target where the button stands, also where the same initiator was refused at another one later', async () => {
    assert.notEqual(logIn(daemon, 'left', STRANGER), 0);
    assert.notEqual(logIn(daemon, 'right', STRANGER), 0);
    await browser.go('/hosts?view=refused');
    for (const target of ['left', 'right']) {
      await page().getByRole('listitem').filter({ hasText: STRANGER }).filter({ hasText: `:${target} ` }).getByRole('button', { name: 'Allow' }).click();
      await text(`causeway grant create ${STRANGER} ${target} --target ${target}`).waitFor({ state: 'attached' });
      await page().keyboard.press('Escape');
      await closed();
    }
  });

  it('are refused in a maintenance, which one click ends', async () => {
    daemon.run('target', 'set', 'right', 'maintenance=true', '--yes');
    assert.notEqual(logIn(daemon, 'right', BOTH), 0);
    await browser.go('/hosts?view=refused');
    await button('End maintenance').first().click();
    await dialog().getByRole('button', { name: 'End maintenance', exact: true }).click();
    await closed();
    assert.equal(logIn(daemon, 'right', BOTH), 0);
  });

  it('of a host with more than 100 sessions are all reached from its page', async () => {
    const many = 230;
    await page().route('**/api/v1/sessions', async (route) => {
      const [first] = (await (await route.fetch()).json()) as Session[];
      await route.fulfill({ json: Array.from({ length: many }, (_, i) => ({ ...first, id: 5_000 + i, host: 'both' })) });
    });
    await browser.go('/hosts/both');
    const ids = async () => (await page().locator('main summary .id').allTextContents()).map(Number);
    await text('130 sessions more').waitFor();
    assert.equal((await ids()).length, 100);
    await button('Show 100 more').click();
    await text('30 sessions more').waitFor();
    await button('Show 30 more').click();
    await text(/sessions more/).waitFor({ state: 'detached' });
    assert.deepEqual(await ids(), Array.from({ length: many }, (_, i) => 5_000 + i));
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('and LUNs that somebody takes care of are said as what they are, and never as safe', async () => {
    await page().route('**/api/v1/status', async (route) => {
      const status = (await (await route.fetch()).json()) as Status;
      await route.fulfill({ json: { ...status, health: 'degraded', problems: ['LUN left is offline: its disk is gone'], counts: { ...status.counts, luns_offline: 1 } } });
    });
    const alert = {
      id: 9, state: 'acknowledged', severity: 'critical', rule: 'lun_offline', title: 'A LUN is offline', kind: 'lun', object: 'left', cause: 'LUN left is offline: its disk is gone',
      next_step: 'look', doc: '', fired: new Date().toISOString(), acknowledged: { by: 'ada', at: new Date().toISOString() }, steps: [],
    };
    await page().route('**/api/v1/alerts', (route) => route.fulfill({ json: [alert] }));
    await browser.go('/');
    await band().getByText('LUN left is offline: its disk is gone (acknowledged by ada)').first().waitFor();
    await band().getByText(/1 of \d LUNs does not serve/).waitFor();
    const said = (await band().textContent()) ?? '';
    assert.doesNotMatch(said, /All data safe|Everything serves/);
    assert.equal(await band().getAttribute('class').then((names) => /\bbad\b/.test(names ?? '')), true);
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });
});
