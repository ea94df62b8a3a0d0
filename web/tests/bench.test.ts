// The bench and the lab: runs that are put together, watched, compared and exported; links that are cut by a click.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { withRuns } from './made_up.ts';
import { LONG_MS } from './patience.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, link, field, choose, text, dialog, closed, confirm } = steps(() => browser);

/** What is asked of the daemon beside the page. */
const api = <T>(path: string): T => JSON.parse(daemon.run('api', 'GET', `/api/v1/${path}`)) as T;
const run = (id: number) => api<{ state: string; writes: boolean; summary?: { iops: number } }>(`bench/runs/${id}`);
const row = (name: string) => page().getByRole('row').filter({ has: page().getByRole('link', { name, exact: true }) });

async function begin(): Promise<void> {
  await button('A new run').first().click();
  await dialog('A run of the bench').waitFor();
}
async function started(): Promise<void> {
  await dialog().getByRole('button', { name: 'Start', exact: true }).click();
  await page().waitForURL(/\/bench\/\d+$/);
}
const over = () => page().getByRole('region', { name: /^Run \d+$/ }).getByText(/^(finished|cancelled)$/).waitFor();

describe('the bench and the lab', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('lun', 'create', 'vm01', '--size', '64M');
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
    await browser.go('/bench');
  });
  after(() => end(browser, daemon));

  it('says what is missing of a run, and shows its command line before it begins', async () => {
    await text('Nothing was measured yet.').waitFor();
    await begin();
    await text('Choose a LUN.').waitFor();
    await choose('Of what', 'memory');
    await field('Size of the memory').fill('32M');
    await field('Seconds').fill('100000');
    await text(/It takes 1 to \d+ s/).waitFor();
    assert.equal(await dialog().getByRole('button', { name: 'Start', exact: true }).isDisabled(), true);
    await field('Seconds').fill('3');
    await field('Warm-up seconds').fill('0');
    await field('Commands in flight, each').fill('2');
    await field('IOPS at most, each thread').fill('2000');
    await dialog().locator('pre', { hasText: /^causeway bench .*-o2/ }).waitFor({ state: 'attached' });
  });

  it('draws a run while it goes on, and has its figures when it is over', async () => {
    await started();
    await page().getByRole('application', { name: /^IOPS/ }).waitFor();
    await page().getByRole('meter', { name: 'How far the run is' }).waitFor();
    await over();
    await text('p99.9').waitFor();
    assert.ok((run(1).summary?.iops ?? 0) > 0);
  });

  it('gives each of its charts as a table', async () => {
    for (const title of ['IOPS', 'Throughput', 'Latency']) {
      await button(`${title} as a table`).click();
      await page().getByRole('region', { name: new RegExp(`^${title}, `) }).getByRole('row').nth(2).waitFor();
    }
    await page().getByRole('row', { name: /^\d\d:\d\d:\d\d [1-9][\d.,]* ?k? [\d.,–]+/ }).first().waitFor();
    await button('IOPS as a chart').click();
    await page().getByRole('application', { name: /^IOPS/ }).waitFor();
  });

  it('gives its result as JSON, CSV and a picture', async () => {
    for (const [form, begins] of [['JSON', '{'], ['CSV', ''], ['SVG', '<svg']] as const) {
      const [file] = await Promise.all([page().waitForEvent('download'), button(new RegExp(`^${form} ?of this result`)).click()]);
      assert.equal(file.suggestedFilename(), `bench-1.${form.toLowerCase()}`);
      const content = readFileSync(await file.path(), 'utf8').replace(/^<\?xml[^>]*>\s*/, '');
      assert.ok(content.startsWith(begins) && content.length > 20, `${form}: ${content.slice(0, 60)}`);
    }
  });

  it('measures a LUN of this node by reading it, and stops where somebody cancels it', async () => {
    await browser.go('/bench');
    await begin();
    await choose('LUN', 'vm01');
    await field('Seconds').fill('600');
    await field('Warm-up seconds').fill('0');
    await field('Commands in flight, each').fill('2');
    await field('IOPS at most, each thread').fill('1000');
    await text('Name, paths, seed').click();
    await field('Name of the run').fill('reads');
    await dialog().getByText(/reads .*vm01/).first().waitFor();
    await started();
    await page().getByRole('application', { name: /^Latency/ }).waitFor();
    await button('Cancel').click();
    await dialog().getByRole('button', { name: 'Cancel it' }).click();
    await closed();
    await over();
    assert.equal(run(2).state, 'cancelled');
    assert.equal(run(2).writes, false);
  });

  it('writes to a LUN only for who types its name, and is told what is lost', async () => {
    await browser.go('/bench');
    await begin();
    await choose('LUN', 'vm01');
    await field('Writes, in percent').fill('50');
    await field('Seconds').fill('2');
    await field('Warm-up seconds').fill('0');
    await field('IOPS at most, each thread').fill('500');
    await dialog().getByText(/^lost: /).waitFor();
    await dialog().locator('pre', { hasText: '/api/v1/bench/runs?force=true' }).waitFor({ state: 'attached' });
    assert.equal(await dialog().getByRole('button', { name: 'Start', exact: true }).isDisabled(), true);
    await field('Type vm01 to go on').fill('vm01');
    await started();
    await over();
    assert.equal(run(3).writes, true);
  });

  it('compares two, in the address, and says which cannot be compared', async () => {
    await browser.go('/bench');
    await page().getByLabel('Compare run 1').check();
    await page().getByLabel('Compare run 2').check();
    await page().getByLabel('Compare run 3').check();
    await page().waitForURL('**/bench?of=2%2C3');
    await button('Compare two').click();
    await page().waitForURL('**/bench/compare?a=2&b=3');
    // One reads, the other writes: the workloads differ.
    await page().getByRole('alert').waitFor();
    await browser.go('/bench/compare?a=1&b=1');
    await page().getByRole('row', { name: /IOPS/ }).first().waitFor();
  });

  it('forgets a result', async () => {
    const { target } = api<{ target: string }>('bench/runs/1');
    await browser.go('/bench/1?do=forget');
    await text(/^Its result is gone: [1-9].* operations a second/).waitFor();
    assert.ok(await dialog().getByRole('button', { name: 'Forget it' }).isDisabled());
    await confirm(`${target}, run 1`, 'Forget it');
    await page().waitForURL('**/bench');
    await row('reads').waitFor();
    assert.equal(api<unknown[]>('bench/runs').length, 2);
  });

  it('shows the topologies of the lab, and where it may not be started the plain reason', async () => {
    await page().route('**/api/v1/lab', async (route) => {
      const lab = (await (await route.fetch()).json()) as Record<string, unknown>;
      await route.fulfill({ json: { ...lab, may_start: false, reason: 'a lab makes network namespaces, which takes root', next_step: 'run it by hand', command_line: 'sudo causeway lab up' } });
    });
    await browser.go('/lab');
    await text('a lab makes network namespaces, which takes root').waitFor();
    await text('sudo causeway lab up').waitFor();
    assert.equal(await button(/^Start/).count(), 0);
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('says beside a link of the lab what a click makes of it', async () => {
    await withRuns(page());
    await browser.go('/lab/1');
    const of = (name: RegExp) => page().getByRole('region', { name: 'Drawing of the lab' }).getByRole('button', { name });
    await of(/^eth0 up/).waitFor();
    assert.equal(await of(/^eth0 up/).getAttribute('title'), 'Cut it');
    assert.equal(await of(/^eth1 cut/).getAttribute('title'), 'Up again');
    await button('black hole').click();
    assert.equal(await of(/^eth0 up/).getAttribute('title'), 'Make it a black hole');
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('cuts a link by a click while I/O goes on, mends it, and tears the lab down', { timeout: LONG_MS }, async (test) => {
    if (!api<{ may_start: boolean }>('lab').may_start) {
      test.skip('this machine may start no lab');
      return;
    }
    await browser.go('/lab');
    await button(/^Start/).first().click();
    await field('Seconds of load').fill('600');
    await dialog().getByRole('button', { name: 'Start', exact: true }).click();
    await page().waitForURL(/\/lab\/\d+$/);
    const paths = page().getByRole('region', { name: 'Paths' });
    const drawing = page().getByRole('region', { name: 'Drawing of the lab' });
    await paths.getByText('active').nth(1).waitFor();
    await drawing.getByRole('button', { name: /^eth0 up/ }).hover();
    await text('What a click does: link eth0: cut').waitFor();
    await text(/echo '\{"link":"eth0","state":"cut"\}' \| causeway api POST lab\/beds\/\d+\/links -/).waitFor();
    await drawing.getByRole('button', { name: /^eth0 up/ }).click();
    await drawing.getByRole('button', { name: /^eth0 cut/ }).waitFor();
    await paths.getByText('down').first().waitFor();
    await text(/link eth0 is cut/).waitFor();
    await text(/no command failed/).waitFor();
    await button('IOPS by path as a table').click();
    await page().getByRole('region', { name: 'IOPS by path, second by second' }).getByRole('row').nth(2).waitFor();
    await paths.getByRole('row', { name: /active [1-9]/ }).first().waitFor();
    await drawing.getByRole('button', { name: /^eth0 cut/ }).click();
    await drawing.getByRole('button', { name: /^eth0 up/ }).waitFor();
    await button('Tear it down').click();
    const { topology } = api<{ topology: string }>(`lab/beds/${page().url().split('/').at(-1)?.split('?')[0]}`);
    await text(/its namespaces go: /).waitFor();
    await confirm(topology, 'Tear it down');
    await page().getByText('stopped', { exact: true }).waitFor();
    await link('Lab').first().waitFor();
  });
});
