// The way back: earlier objects with what changed, and LUNs that no object names after the state directory was lost.

import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, field, text, dialog, closed, confirm } = steps(() => browser);

const HOST = 'iqn.2026-01.org.debian:web';
const json = <T>(...words: string[]) => JSON.parse(daemon.run(...words, '-o', 'json')) as T;
const names = () => json<{ name: string }[]>('lun', 'ls').map((lun) => lun.name).sort();
const newest = () => json<{ generation: number }[]>('state', 'ls')[0]?.generation ?? 0;

describe('what was before', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('share', 'create', 'vm01', '--size', '64M', '--target', 'vms', '--for', HOST);
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  it('is listed with what changed, and gone back to by its name, after its plan was seen', async () => {
    const good = newest();
    daemon.run('lun', 'resize', 'vm01', '--size', '96M');
    daemon.run('lun', 'create', 'later', '--size', '16M');
    await browser.go('/settings/earlier');
    await button(`What changed in generation ${good + 1}`).click();
    const changed = page().getByRole('region', { name: `What changed from generation ${good} to ${good + 1}` });
    await changed.getByRole('row', { name: /^lun\.vm01\.size/ }).waitFor();
    await button(`Go back to generation ${good}`).click();
    await dialog(`Go back to generation ${good}`).getByText(/LUN later|lun later/).first().waitFor();
    assert.equal(await button('Go back').isDisabled(), true);
    await confirm(`generation ${good}`, 'Go back');
    // A LUN is never made smaller by it, and what came later keeps its data.
    await until('the later LUN is deleted', () => names().join() === 'vm01');
    assert.deepEqual(json<{ name: string }[]>('lun', 'ls', '--removed').map((lun) => lun.name), ['later']);
    await page().getByRole('row').filter({ hasText: 'in force' }).filter({ hasText: String(newest()) }).waitFor();
    await browser.go('/audit');
    await text('went back to an earlier state').first().waitFor();
  });

  it('of LUNs whose objects were lost are taken into service by a form', async () => {
    await daemon.end();
    rmSync(join(daemon.dir, 'state'), { recursive: true });
    await daemon.start();
    assert.deepEqual(names(), []);
    await browser.go('/');
    await enter(browser, readFileSync(join(daemon.dir, 'state', 'api.token'), 'utf8').trim());
    await browser.go('/settings/earlier');
    await button('Adopt vm01').click();
    await field('Name').fill('back');
    await dialog().getByText(/back/).first().waitFor();
    await dialog().getByRole('button', { name: 'Adopt', exact: true }).click();
    await closed();
    await until('it is served', () => names().includes('back'));
    await button('Adopt vm01').waitFor({ state: 'detached' });
  });
});
