// What goes wrong below: damaged blocks that a scrub finds, a journal that is missing, a change that cannot be undone.

import assert from 'node:assert/strict';
import { closeSync, openSync, readdirSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, field, text, dialog, closed } = steps(() => browser);

const WEB = 'iqn.2026-01.org.debian:web';
const BLOCK = 4096;
/** Far enough from each other to be two places, and in the half of the LUN that the load has written. */
const DAMAGED = [300, 2_000];
const shown = (kind: string, name: string) => JSON.parse(daemon.run(kind, 'show', name, '-o', 'json')) as Record<string, unknown>;
const journal = () => (shown('pool', 'default')['journal'] as { state: string } | undefined)?.state;

/** Below the daemon, as a disk does that lies. */
function damage(lun: string): void {
  const dir = join(daemon.dir, 'pool');
  const files = readdirSync(dir).filter((name) => name.endsWith('.lun'));
  assert.equal(files.length, 1, `the file of ${lun} is not the only one: ${files.join(', ')}`);
  const file = openSync(join(dir, files[0] ?? ''), 'r+');
  for (const block of DAMAGED) writeSync(file, Buffer.alloc(BLOCK, 0x5a), 0, BLOCK, block * BLOCK);
  closeSync(file);
}

describe('damage', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('share', 'create', 'vm01', '--size', '64M', '--target', 'vms', '--for', WEB, '--integrity', 'true');
    const url = `iscsi://127.0.1.1:${daemon.port}/iqn.2026-11.io.causeway:vms/0`;
    daemon.run('bench', '--fill', '-Zr', '-b64K', '-s', '-w100', '-d1', '-W0', '-f16M', '--destroy', '--no-discover', '--initiator-name', WEB, url);
    // In peace: all that was written is in the LUN's file, and not in the journal alone.
    await daemon.end();
    damage('vm01');
    await daemon.start();
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  it('is found by a scrub: the map shows where, and each screen says it', async () => {
    await browser.go('/luns/vm01?do=scrub');
    await button('Start').click();
    await closed();
    const onPage = page().getByRole('region', { name: 'Scrub: all of it read and compared' });
    const map = onPage.getByRole('img', { name: '64 MiB of 64 MiB read, 2 places with findings' });
    await map.waitFor();
    await onPage.getByText(/^\d+ findings$/).waitFor();
    // Each place is where it is in the LUN.
    const drawn = await map.locator('rect.bad').evaluateAll((found) => found.map((one) => Number(one.getAttribute('x'))));
    const wanted = DAMAGED.map((block) => ((block * BLOCK) / (64 << 20)) * 1000);
    assert.equal(drawn.length, wanted.length);
    drawn.forEach((x, i) => assert.ok(Math.abs(x - (wanted[i] ?? 0)) < 1, `place ${i} is drawn at ${x} and not at ${wanted[i]}`));
    await browser.go('/integrity');
    await text('1 LUN has known damage: vm01').waitFor();
    await page().getByRole('img', { name: /2 places with findings/ }).waitFor();
    // Each finding is a row, and the map is one by keyboard and as a table.
    const rows = page().getByRole('region', { name: 'Findings in vm01' }).getByRole('row');
    for (const block of DAMAGED) await rows.filter({ hasText: `${(block * BLOCK / 512).toLocaleString('en')}` }).filter({ hasText: 'not what was written' }).waitFor();
    const keys = page().getByRole('application', { name: 'Scrub map of vm01: arrow keys move the cursor' });
    await keys.focus();
    await page().keyboard.press('ArrowRight');
    await page().keyboard.press('ArrowRight');
    await text(/^LBA 2,400, .* blocks: not what was written$/).waitFor();
    await button('Scrub map of vm01 as a table').click();
    const table = page().getByRole('region', { name: 'Scrub map of vm01, as a table' });
    assert.equal(await table.getByText('not what was written').count(), DAMAGED.length);
    await browser.go('/luns');
    await text(/blocks are bad|scrub found/).first().waitFor();
    await browser.go('/');
    await text(/vm01/).first().waitFor();
    assert.equal(await page().getByText('All data safe').count(), 0);
  });

  it('of a journal that is missing takes the LUN offline; its journal is opened again where it is back', async () => {
    const file = join(daemon.dir, 'journal');
    await daemon.kill();
    renameSync(file, `${file}.aside`);
    await daemon.start();
    await browser.go('/pools');
    const card = page().getByRole('region', { name: 'Journal of pool default' });
    await card.getByText('missing', { exact: true }).first().waitFor();
    assert.equal(shown('lun', 'vm01')['state'], 'offline');
    await button('Open it again').click();
    // It is not there yet: the daemon says so, and nothing has changed.
    await dialog().getByRole('button', { name: /^Open/ }).last().click();
    await dialog().getByRole('alert').waitFor();
    renameSync(`${file}.aside`, file);
    await dialog().getByRole('button', { name: /^Open/ }).last().click();
    await closed();
    await card.getByText('open', { exact: true }).waitFor();
    await until('the LUN is served again', () => shown('lun', 'vm01')['state'] === 'online');
  });

  it('of a journal that is lost is accepted only by who types the name of its pool, and is told what is lost', async () => {
    const file = join(daemon.dir, 'journal');
    await daemon.kill();
    renameSync(file, `${file}.lost`);
    await daemon.start();
    await browser.go('/');
    await browser.go('/pools');
    await button('Give it up').click();
    await dialog('Give up the journal of pool default').getByText(/LUN vm01 loses |nobody knows|No LUN loses/).first().waitFor();
    const verb = dialog().getByRole('button', { name: /^Give/ }).last();
    assert.equal(await verb.isDisabled(), true);
    await field('Type default to go on').fill('another');
    assert.equal(await verb.isDisabled(), true);
    assert.equal(journal(), 'missing');
    await field('Type default to go on').fill('default');
    await verb.click();
    await closed();
    await until('the pool has a new journal', () => journal() === 'open');
    assert.equal(shown('lun', 'vm01')['state'], 'online');
    await page().getByRole('region', { name: 'Journal of pool default' }).getByText('open', { exact: true }).waitFor();
    await browser.go('/audit');
    await text(/journal/).first().waitFor();
  });

  it('of nobody: a thick LUN is grown as a job, which the tray shows, and is larger when it has ended', async () => {
    daemon.run('lun', 'create', 'thick', '--size', '16M', '--thin', 'false');
    await browser.go('/luns/thick?do=grow');
    await field('New size').fill('64M');
    await button('Set size').click();
    await closed();
    const tray = page().getByRole('region', { name: 'Jobs', exact: true });
    await tray.getByRole('link', { name: /thick/ }).first().waitFor();
    await tray.getByText('finished').first().waitFor();
    assert.equal(shown('lun', 'thick')['size'], 64 << 20);
    await page().keyboard.press('Escape');
    await text('64 MiB').first().waitFor();
  });

  it('that is to come is said as well: what is in memory is not called safe', async () => {
    daemon.run('lun', 'create', 'scratch', '--size', '16M', '--backend', 'memory');
    await browser.go('/');
    await page().getByRole('region', { name: 'How the node is' }).getByText(/1 LUN is in memory and gone with the daemon: scratch/).first().waitFor();
    assert.match(daemon.run('status'), /unsafe LUNs +1 LUN is in memory and gone with the daemon: scratch/);
  });

  it('that the power may do is said once, although the node has a note of it as well', async () => {
    daemon.run('lun', 'create', 'loose', '--size', '16M', '--cache', 'volatile', '--yes');
    const { notes = [] } = JSON.parse(daemon.run('status', '-o', 'json')) as { notes?: string[] };
    assert.ok(notes.some((note) => note.startsWith('cache = "volatile" as asked for in LUN loose: ')), notes.join('\n'));
    const band = page().getByRole('region', { name: 'How the node is' });
    await band.getByText(/1 LUN loses unflushed writes with the power: loose/).first().waitFor();
    const said = await band.innerText();
    assert.equal(said.split('loose').length, 2, said);
  });

  it('of an undo that cannot be is said with its cause, and nothing is changed', async () => {
    daemon.run('lun', 'create', 'first', '--size', '16M');
    await browser.go('/luns/first?do=rename');
    await field('New name').fill('second');
    await button('Rename').last().click();
    await page().waitForURL('**/luns/second');
    // Somebody takes the name that it had.
    daemon.run('lun', 'create', 'first', '--size', '32M');
    await page().getByRole('status').getByRole('button', { name: 'Undo : Rename LUN first: done' }).last().click();
    await page().getByRole('status').getByText(/^Rename LUN second: .*first/).waitFor();
    assert.equal(shown('lun', 'second')['size'], 16 << 20);
    assert.equal(shown('lun', 'first')['size'], 32 << 20);
  });
});
