// How people log in for the first time, and what becomes of a wrong password.

import { readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
const first = join(daemon.dir, 'state', 'first-password');
let browser: Browser;

const page = () => browser.page;
const button = (name: string) => page().getByRole('button', { name, exact: true });
const field = (label: string) => page().getByLabel(label, { exact: true });
const text = (what: string | RegExp) => page().getByText(what);

describe('a login', { skip }, () => {
  before(async () => {
    await daemon.start();
    browser = await Browser.open(daemon.url);
    await page().goto('/');
    await page().getByRole('link', { name: 'Create the first share.' }).click();
    await field('Name').fill('vm01');
    await field('Size').fill('64M');
    await field('Every initiator that reaches a portal').check();
    await page().getByRole('dialog', { name: 'Log in' }).waitFor();
  });
  after(async () => {
    await browser.close();
    await daemon.stop();
    browser.well();
  });

  it('says that a password is wrong, and not which of name and password it is', async () => {
    await field('Password').fill('not the first password');
    await button('Log in').last().click();
    await text('The login failed').first().waitFor();
  });

  it('with the first password asks for one of their own, and takes no short one', async () => {
    await field('Password').fill(readFileSync(first, 'utf8').trim());
    await button('Log in').last().click();
    await page().getByRole('dialog', { name: 'A password of your own' }).waitFor();
    await field('New password').fill('four words in a row');
    await field('The same again').fill('four words in a low');
    await button('Set the password').click();
    await text('The two new passwords differ').waitFor();
  });

  it('goes on with what was refused when the password is set, and the first one is gone', async () => {
    await field('The same again').fill('four words in a row');
    await button('Set the password').click();
    await page().getByRole('dialog', { name: 'A password of your own' }).waitFor({ state: 'detached' });
    await text(/create lun\s+vm01/).waitFor();
    await button('Create').click();
    await page().waitForURL('**/luns/vm01?show=connect');
    assert.equal(existsSync(first), false);
  });
});
