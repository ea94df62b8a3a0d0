// What was done by whom, and the disks below it all.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { withDisks } from './made_up.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const dir = mkdtempSync(join(tmpdir(), 'causeway-records-'));
const daemon = new Daemon();
let browser: Browser;
const { page, button, link, field, choose, text, confirm } = steps(() => browser);

const HOSTILE = '<img src=x onerror=document.title=1>';
const entry = (words: string | RegExp) => page().getByRole('main').getByRole('listitem').filter({ hasText: words });

describe('the audit log and the disks', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('lun', 'create', 'vm01', '--size', '64M');
    daemon.run('lun', 'set', 'vm01', 'limit.iops=500');
    daemon.run('host', 'create', 'esx01', '--iqn', 'iqn.1998-01.com.vmware:esx01');
    daemon.run('user', 'create', 'vera', '--role', 'viewer', '--password-file', password());
    browser = await Browser.open(daemon.url);
    await page().goto('/audit');
  });
  after(async () => {
    rmSync(dir, { recursive: true, force: true });
    await end(browser, daemon);
  });

  function password(): string {
    const file = join(dir, 'password');
    writeFileSync(file, 'four words in a row\n', { mode: 0o600 });
    return file;
  }

  it('shows the audit log to nobody who is not an admin, and says who may see it', async () => {
    await text('Entries of the audit log are for admins who have logged in.').waitFor();
    await enter(browser, daemon.token);
    await browser.go('/audit');
    await entry(/made LUN vm01/).waitFor();
  });

  it('shows of a change what was before and after, from where it came and what came of it', async () => {
    await entry(/changed LUN vm01/).locator('summary').click();
    await page().getByRole('row', { name: 'limit.iops was not there 500' }).waitFor();
    await text(/unix socket/).first().waitFor();
    await page().waitForURL(/[?&]entry=\d+/);
    await browser.go('/events');
    await page().goBack();
    await page().getByRole('row', { name: 'limit.iops was not there 500' }).waitFor();
  });

  it('filters over all entries, by who, kind, name, time and result, in the address', async () => {
    await choose('Of what kind', 'host');
    await entry(/host esx01/).waitFor();
    await entry(/LUN vm01/).first().waitFor({ state: 'detached' });
    await field('Of which name').fill('esx*');
    await text('causeway audit ls').waitFor({ state: 'attached' });
    await choose('Since when', '1h');
    await page().waitForURL(/kind=host.*name=esx/);
    await entry(/host esx01/).waitFor();
    await field('By whom').fill('nobody-of-this-name');
    await text('No entry fits.').waitFor();
    await browser.go('/audit');
  });

  it('has what was refused, with its code', async () => {
    assert.throws(() => daemon.run('lun', 'create', 'vm01', '--size', '64M'));
    await button('refused').click();
    await entry(/LUN vm01/).first().locator('summary').click();
    await text(/causeway explain CWY\d+/).waitFor();
    await button('all').click();
  });

  it('says what was done in plain words, and hides options that are off', async () => {
    daemon.run('scrub', 'start', 'vm01');
    await entry(/started a scrub of LUN vm01/).first().waitFor();
    await browser.go('/audit');
    assert.equal(await text(/=false/).count(), 0);
    await choose('Of what kind', 'bench run');
    await text('No entry fits.').waitFor();
    await browser.go('/audit');
  });

  it('has events that lead to what they are about, whatever that is', async () => {
    await browser.go('/events');
    await page().getByRole('listitem').filter({ hasText: 'scrub' }).getByRole('link', { name: 'vm01' }).first().click();
    await page().waitForURL('**/luns/vm01');
    await browser.go('/');
    await page().getByRole('region', { name: 'Latest events' }).getByRole('link', { name: 'vm01' }).first().click();
    await page().waitForURL('**/luns/vm01');
    await browser.go('/audit');
  });

  it('has no hole in events where more happen after older ones were asked for', async () => {
    const log = Array.from({ length: 650 }, (_, i) => ({ id: 100_001 + i, time: new Date().toISOString(), severity: 'info', code: 'CWY0', object: { kind: 'node', name: 'san-a' }, message: `Event ${i + 1} of a long log` }));
    await page().route('**/api/v1/events/log?*', (route) => {
      const asked = new URL(route.request().url()).searchParams;
      const before = Number(asked.get('cursor') ?? Infinity);
      const rows = log.filter((one) => one.id < before).toReversed().slice(0, Number(asked.get('limit')));
      return route.fulfill({ json: rows });
    });
    const numbers = async () => (await page().locator('main li', { hasText: 'of a long log' }).locator('.text').allTextContents()).map((one) => Number(/Event (\d+)/.exec(one)?.[1]));
    const from = (newest: number, oldest: number) => Array.from({ length: newest - oldest + 1 }, (_, i) => newest - i);
    await browser.go('/events');
    await text('Event 650 of a long log').waitFor();
    assert.deepEqual(await numbers(), from(650, 451));
    await button('Older events').click();
    await text('Event 1 of a long log').waitFor();
    await button('Older events').waitFor({ state: 'detached' });
    for (const n of [651, 652, 653]) log.push({ ...log[0]!, id: 100_000 + n, message: `Event ${n} of a long log` });
    await text('Event 653 of a long log').waitFor();
    assert.deepEqual(await numbers(), from(653, 1));
    await page().unrouteAll({ behavior: 'ignoreErrors' });
    await browser.go('/audit');
  });

  it('exports what fits, a document a line, without secrets', async () => {
    await choose('Of what kind', 'user');
    await entry(/user vera/).waitFor();
    const [file] = await Promise.all([page().waitForEvent('download'), button('Export what fits').click()]);
    const lines = readFileSync(await file.path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as { object: { name: string } });
    assert.deepEqual([...new Set(lines.map((line) => line.object.name))], ['vera']);
    assert.ok(!JSON.stringify(lines).includes('four words'));
  });

  it('shows hostile names in it as the text that they are', async () => {
    await page().route('**/api/v1/audit?*', async (route) => {
      const rows = (await (await route.fetch()).json()) as Record<string, unknown>[];
      await route.fulfill({ json: rows.map((row) => ({ ...row, who: HOSTILE, after: { [HOSTILE]: HOSTILE } })) });
    });
    await browser.go('/audit?kind=lun');
    await entry(HOSTILE).first().locator('summary').click();
    await page().getByRole('cell', { name: HOSTILE }).first().waitFor();
    assert.equal(await page().locator('main img').count(), 0);
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('shows a disk of this machine with its figures and what speaks against it', async () => {
    await browser.go('/disks');
    await page().getByRole('table', { name: 'Disks' }).getByRole('link').first().click();
    await page().waitForURL('**/disks/*');
    const known = JSON.parse(daemon.run('api', 'GET', '/api/v1/disks')) as { id: string; health: string }[];
    const one = known.find((disk) => page().url().endsWith(`/disks/${encodeURIComponent(disk.id)}`));
    assert.ok(one, 'it is none of the disks that the daemon knows');
    const words: Record<string, RegExp> = { unknown: /^unknown/, well: /^well$/, watch: /^watch$/, replace_soon: /^replace soon$/, failing: /^failing$/ };
    await page().getByRole('region', { name: 'How it is' }).getByText(words[one.health] ?? /never/).first().waitFor();
    await text('Where it is heading').waitFor();
    await text(`causeway disk show`).waitFor();
  });

  it('names a bay that went dark, with the serial number of what was in it, and a disk that is gone', async () => {
    await withDisks(page());
    await browser.go('/');
    await browser.go('/disks');
    const bays = page().getByRole('region', { name: 'Bays' });
    await bays.getByText('was in it: ZC10005').waitFor();
    assert.equal(await bays.getByText('dark', { exact: true }).count(), 3);
    assert.equal(await bays.getByText('does not start').count(), 1);
    // What is to be done about them says the same word.
    const todo = page().getByRole('region', { name: 'What to do' });
    assert.equal(await todo.getByText('dark', { exact: true }).count(), 3);
    assert.equal(await todo.getByText('does not start', { exact: true }).count(), 1);
    await page().getByRole('region', { name: 'What to do' }).getByText(/replace before 2027-02-10/).waitFor();
    await field('Filter disks').fill('journal');
    await link('nvme0n1').last().waitFor();
    assert.equal(await page().getByRole('table', { name: 'Disks' }).getByRole('link').count(), 1);
  });

  it('forgets a disk that was taken out, for who types its name', async () => {
    await browser.go('/disks/ZC10002');
    await text('Was there last').waitFor();
    await page().route('**/api/v1/disks/ZC10002', (route) => route.fulfill({ json: null }));
    await button('Forget it').click();
    await confirm('ZC10002', 'Forget');
    await page().waitForURL('**/disks');
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('draws the disks of a pool on the map, and what would be lost with one', async () => {
    await page().route('**/api/v1/disks', async (route) => {
      const [one] = (await (await route.fetch()).json()) as Record<string, unknown>[];
      await route.fulfill({ json: [{ ...one, id: 'made-up', names: ['sdx'], used_by: ['pool default'] }] });
    });
    await browser.go('/topology');
    await button(/^disk\s*sdx/).click();
    await text(/Without disk sdx/).waitFor();
    await button(/^pool\s*default\s*lost/).waitFor();
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('shows the keys by a question mark, and does something with what the search has found', async () => {
    await page().keyboard.press('?');
    await page().getByRole('dialog', { name: 'Keys' }).getByText('filter what is shown').waitFor();
    await page().keyboard.press('Escape');
    await page().getByRole('dialog').waitFor({ state: 'detached' });
    await page().keyboard.press('Control+k');
    await page().getByRole('combobox', { name: 'Search' }).fill('rename vm01');
    await page().getByRole('option', { name: 'Rename vm01' }).first().waitFor();
    await page().keyboard.press('Enter');
    await page().getByRole('dialog', { name: 'Rename LUN vm01' }).waitFor();
    await page().keyboard.press('Escape');
  });
});
