// A login that is over because its time is: not used for long, or as old as one may be.

import { writeFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { PATIENCE_MS } from './patience.ts';
import { end, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
/** A page that is open asks each few seconds: also on a slow machine in less than the first. */
const [IDLE, LIFE] = [15, 30];
const daemon = new Daemon(false, '', `token_for_reads = true\nlogin_idle_seconds = ${IDLE}\nlogin_life_seconds = ${LIFE}`);
let browser: Browser;
const { page, button, field, text, dialog, closed } = steps(() => browser);
const sleep = (seconds: number) => new Promise((done) => setTimeout(done, seconds * 1000));
/** Where nothing may be read without a login, the page asks for one by itself. */
async function logIn(): Promise<void> {
  await field('User').fill('anna');
  await field('Password').fill(daemon.password);
  await dialog('Log in').getByRole('button', { name: 'Log in', exact: true }).click();
  await dialog('Log in').waitFor({ state: 'detached' });
}

const cookies = async () => (await page().context().cookies()).filter(({ name }) => name === 'causeway-session').length;

describe('a login whose time is over', { skip }, () => {
  before(async () => {
    await daemon.start();
    const secret = join(daemon.dir, 'anna');
    writeFileSync(secret, daemon.password, { mode: 0o600 });
    daemon.run('user', 'create', 'anna', '--role', 'admin', '--password-file', secret);
    daemon.run('lun', 'create', 'vm01', '--size', '64M');
    browser = await Browser.open(daemon.url);
  });
  after(() => end(browser, daemon));

  it('because nobody used it is asked for again, although the browser still has its cookie', async () => {
    await page().goto(`${daemon.url}/luns`);
    await logIn();
    await text('vm01').first().waitFor();
    await page().goto('about:blank');
    await sleep(IDLE + 1);
    assert.equal(await cookies(), 1, 'the browser would go on');
    await page().goto(`${daemon.url}/luns`);
    await dialog('Log in').waitFor();
    assert.equal(await text('vm01').count(), 0, 'nothing is shown of what was there');
  });

  it('is used by a page that is open, ends all the same at its age, and what was begun goes on', async () => {
    // Its age counts from when the daemon lets it in, which is later.
    const begun = Date.now();
    await logIn();
    await browser.go('/luns/vm01?do=grow');
    await field('New size').fill('128M');
    await text('What it does').waitFor();
    await text('Your session has ended.').waitFor({ timeout: LIFE * 1000 + PATIENCE_MS });
    const took = (Date.now() - begun) / 1000;
    assert.ok(took >= LIFE - 1, `it ended after ${took} s: not at its age of ${LIFE} s, but as one that nobody uses, after ${IDLE} s`);
    await logIn();
    await text('What it does').waitFor();
    await button('Set size').click();
    await closed();
    assert.match(daemon.run('lun', 'show', 'vm01', '-o', 'json'), /134217728/);
  });
});
