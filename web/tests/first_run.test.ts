// A new node: the first steps, the first login, users, tokens and what becomes of wrong passwords.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { withRuns } from './made_up.ts';
import { end, enter as enterWith, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
const first = join(daemon.dir, 'state', 'first-password');
let browser: Browser;
const { page, button, link, field, choose, text, dialog, closed, confirm } = steps(() => browser);

const OWN = 'four words in a row';
const LATER = 'four other words in a row';

/** A session beside the browser's: its cookie and what its changes bring along. */
async function enter(user: string, password: string): Promise<{ status: number; headers: Record<string, string> }> {
  const answer = await fetch(`${daemon.url}/api/v1/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ user, password }) });
  const body = (await answer.json()) as { csrf?: string };
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  return { status: answer.status, headers: { cookie, 'x-causeway-csrf': body.csrf ?? '' } };
}

const asked = (path: string, headers: Record<string, string>, method = 'GET') => fetch(`${daemon.url}/api/v1/${path}`, { method, headers }).then((answer) => answer.status);

describe('a new node and who uses it', { skip }, () => {
  before(async () => {
    await daemon.start();
    browser = await Browser.open(daemon.url);
    await page().goto('/');
  });
  after(() => end(browser, daemon));

  const begun = Date.now();

  it('begins with the first steps, seven of them', async () => {
    await page().waitForURL('**/first-run');
    await page().getByRole('heading', { name: 'A password of your own' }).waitFor();
    assert.equal(await page().getByRole('navigation', { name: 'Steps' }).getByRole('link').count(), 7);
  });

  it('says that a password is wrong, and not which of name and password it is', async () => {
    await page().getByRole('main').getByRole('button', { name: 'Log in' }).click();
    await field('Password').fill('not the first password');
    await dialog().getByRole('button', { name: 'Log in', exact: true }).click();
    await text('The login failed').first().waitFor();
  });

  it('with the first password asks for one of their own, and takes no two that differ', async () => {
    await field('Password').fill(readFileSync(first, 'utf8').trim());
    await dialog().getByRole('button', { name: 'Log in', exact: true }).click();
    await dialog('A password of your own').waitFor();
    await field('New password').fill(OWN);
    await field('The same again').fill('four words in a low');
    await button('Set the password').click();
    await text('The two new passwords differ').waitFor();
  });

  it('goes on when the password is set, and the first one is gone', async () => {
    await field('The same again').fill(OWN);
    await button('Set the password').click();
    await closed();
    await text('You are logged in as admin, admin.').waitFor();
    assert.equal(existsSync(first), false);
  });

  it('changes the name, and says that it waits for a restart', async () => {
    await link('Next: The name of this node').click();
    await field('Another name').fill('san b');
    await page().getByRole('alert').getByText(/node\.name/).first().waitFor();
    assert.equal(await button('Apply').isDisabled(), true);
    await field('Another name').fill('san-b');
    await text('node.name: "san-a" → "san-b"').waitFor();
    await text('The same as a command line and as a call of the API').click();
    await text('causeway config set --name san-b').waitFor();
    await text(/curl -X PATCH .*api\/v1\/config/).waitFor();
    await button('Apply').click();
    await text('One setting waits for a restart, which ends 0 sessions').waitFor();
  });

  it('adds a pool, and refuses one where something else is', async () => {
    await link('Next: Where LUNs lie').click();
    await text(/^default: has room, .* free/).waitFor();
    await text(/what an acknowledged write has behind it: the journal of its pool$/).waitFor();
    await text('Another pool, on another disk').click();
    await field('Name').fill('fast');
    await field('Directory or device').fill(join(daemon.dir, 'state'));
    await page().getByRole('alert').getByText(/holds the node's own state/).waitFor();
    assert.equal(await button('Apply').isDisabled(), true);
    await field('Directory or device').fill(join(daemon.dir, 'fast'));
    await field('Journal').fill(join(daemon.dir, 'fast-journal'));
    await field('Size of the journal').fill('16MiB');
    await text(/pool\[1\]\.journal_size: nothing → "16MiB"/).waitFor();
    await button('Apply').click();
    await text('5 settings wait for a restart').waitFor();
  });

  it('has portals listen elsewhere at once, restarts the daemon for the rest and waits until it is back', async () => {
    await link('Next: Where hosts reach it').click();
    await text('which are for this machine alone').waitFor();
    const portals = field('Addresses or interfaces');
    await until('the portals of now are in the field', async () => (await portals.inputValue()) === `127.0.1.1:${daemon.port}, 127.0.2.1:${daemon.port}`);
    await portals.fill('127.0.1.1 198.51.100.7');
    await page().getByRole('alert').getByText(/this machine has no address 198\.51\.100\.7/).waitFor();
    await portals.fill('127.0.1.1 127.0.3.1');
    await text(/portal_group\[0\]\.listen/).first().waitFor();
    await text('It is in effect at once, and ends no session.').waitFor();
    await button('Apply').click();
    await text('In effect now: portal_group[0].listen').waitFor();
    await text('5 settings wait for a restart').waitFor();
    await until('a portal more is served', () => daemon.run('status', '-o', 'json').includes(`127.0.3.1:${daemon.port}`));
    const { pid } = daemon;
    const asked = Date.now();
    await button('Restart the daemon …').click();
    await text('No host is logged in.').waitFor();
    await dialog('Restart the daemon').getByRole('button', { name: 'Restart', exact: true }).click();
    // Sessions of the page end with the daemon.
    await field('Password').fill(OWN);
    console.log(`the daemon was back after ${((Date.now() - asked) / 1000).toFixed(1)} s`);
    await dialog('Log in').getByRole('button', { name: 'Log in', exact: true }).click();
    await closed();
    await text(/The daemon is back after \d+ s: what waited for it is now in effect: .*node\.name: "san-b"/).first().waitFor();
    assert.equal(daemon.pid, pid, 'nobody had to start it');
    const status = JSON.parse(daemon.run('status', '-o', 'json')) as { node: string; portals: { address: string }[]; pools: { name: string }[] };
    assert.equal(status.node, 'san-b');
    assert.deepEqual(status.portals.map((one) => one.address), [`127.0.1.1:${daemon.port}`, `127.0.3.1:${daemon.port}`]);
    assert.ok(status.pools.some((one) => one.name === 'fast'), 'the pool is there');
    await link('Back').click();
    await text(/^fast: has room/).waitFor();
    await link('Next: Where hosts reach it').click();
  });

  it('makes the first share, reads it with qemu-img, and says when a host is connected', async () => {
    await link('Next: The first share').click();
    await button('Create the first share').click();
    await field('Name').fill('vm01');
    await field('Size').fill('64M');
    await dialog().getByText('More', { exact: true }).click();
    await choose('Pool', 'fast');
    await field('Every initiator that reaches a portal').check();
    await text(/create lun\s+vm01/).waitFor();
    await button('Create').click();
    await page().waitForURL('**/first-run?step=connect');
    await text('iscsiadm -m discovery').first().waitFor();
    await text('No host is connected yet.').waitFor();
    const qemu = spawnSync('qemu-img', ['info', `iscsi://127.0.3.1:${daemon.port}/iqn.2026-11.io.causeway:vm01/0`], { encoding: 'utf8' });
    if (qemu.error === undefined) assert.match(qemu.stdout, /virtual size: 64 MiB/, qemu.stderr);
    else console.log('skipped: qemu-img is not installed');
    daemon.load('iqn.2026-01.org:first', 31, 1, 'vm01', 0, '-o1', '-g200');
    await text('everyone is connected to LUN vm01.').waitFor();
  });

  it('took less than five minutes, on seven screens', () => {
    const seconds = (Date.now() - begun) / 1000;
    console.log(`the first steps: ${seconds.toFixed(0)} s, seven screens`);
    // A person is not this fast, and the machine of a person is not that busy.
    const busy = loadavg()[0]! > 3 * availableParallelism();
    assert.ok(busy || seconds < 300, `${seconds} s`);
  });

  it('does not show the steps by themselves again, and by name when they are wanted', async () => {
    await link('Next: What comes next').click();
    await button('To the overview').click();
    await page().getByRole('heading', { name: 'Overview' }).waitFor();
    await page().reload();
    await page().getByRole('heading', { name: 'Overview' }).waitFor();
    await page().keyboard.press('Control+k');
    await page().getByRole('combobox').fill('first steps');
    await page().keyboard.press('Enter');
    await page().waitForURL('**/first-run');
  });

  it('shows an admin who may log in, and adds somebody without showing the password', async () => {
    await page().goto('/settings/users');
    await page().getByRole('cell', { name: 'admin (you)' }).waitFor();
    await button('Add a user').click();
    await field('Name').fill('eve');
    await choose('Role', 'viewer');
    await field('Password').fill('too short');
    await text('3 characters more at least').waitFor();
    await field('Password').fill(OWN);
    await field('The same again').fill('another one');
    await text('The two are not the same yet').waitFor();
    assert.equal(await button('Add').isDisabled(), true);
    await field('The same again').fill(OWN);
    await field('They choose one of their own at the first login').uncheck();
    await text('The same as a command line and as a call of the API').click();
    await text('causeway user create eve --role viewer').waitFor();
    assert.equal(await dialog().locator('pre', { hasText: OWN }).count(), 0);
    await button('Add').click();
    await closed();
    await page().getByRole('cell', { name: 'eve', exact: true }).waitFor();
    assert.equal((await enter('eve', OWN)).status, 200);
  });

  it('tells a viewer in a sentence whom users are for', async () => {
    const other = await Browser.open(daemon.url);
    try {
      await other.page.goto('/settings/users');
      await other.page.getByText('Users are for admins who have logged in.').waitFor();
      await other.page.getByRole('main').getByRole('button', { name: 'Log in' }).click();
      await other.page.getByLabel('User', { exact: true }).fill('eve');
      await other.page.getByLabel('Password', { exact: true }).fill(OWN);
      await other.page.getByRole('dialog').getByRole('button', { name: 'Log in', exact: true }).click();
      await other.page.getByText('Users are for admins. You are eve, viewer').waitFor();
      await other.go('/luns/vm01?do=delete');
      await other.page.getByRole('alert').getByText(/"eve" is viewer, and this takes operator/).waitFor();
      await other.page.keyboard.press('Escape');
      await withRuns(other.page);
      await other.go('/lab');
      await other.page.getByText('Only admins start a lab, cut its links and tear it down: you are eve, viewer.').waitFor();
      assert.equal(await other.page.getByRole('main').getByRole('button', { name: /^Start/ }).count(), 0);
      await other.go('/lab/1');
      await other.page.getByRole('button', { name: /^eth0/ }).first().waitFor({ state: 'attached' });
      assert.deepEqual(await other.page.getByRole('button', { name: /^(eth|p)\d/ }).evaluateAll((all) => all.filter((one) => !(one as HTMLButtonElement).disabled).length), 0);
      assert.equal(await other.page.getByRole('button', { name: 'Tear it down' }).count(), 0);
      await other.page.unrouteAll({ behavior: 'ignoreErrors' });
    } finally {
      await other.close();
    }
    other.well();
  });

  it('changes what somebody may do, at once', async () => {
    await button('Change eve').click();
    await choose('Role', 'operator');
    await field('May log in').uncheck();
    await text('causeway user set eve --role operator --enabled false').waitFor({ state: 'attached' });
    await button('Change').click();
    await closed();
    await page().getByRole('row', { name: /eve operator/ }).getByText('may not log in').waitFor();
    assert.equal((await enter('eve', OWN)).status, 401);
  });

  it('does not change a user whom another admin changed meanwhile, and shows what they did', async () => {
    await button('Change eve').click();
    await choose('Role', 'admin');
    daemon.run('user', 'set', 'eve', '--enabled', 'true');
    await dialog().getByRole('button', { name: 'Change', exact: true }).click();
    const conflict = dialog().getByText('Somebody else has changed it since you opened this');
    await conflict.waitFor();
    await page().getByRole('row', { name: 'enabled false true as it is' }).waitFor();
    await button('Take theirs').click();
    await conflict.waitFor({ state: 'detached' });
    assert.equal(await field('May log in').isChecked(), true);
    await page().keyboard.press('Escape');
    await closed();
    await button('Remove eve').click();
    await field('Type eve to go on').fill('eve');
    daemon.run('user', 'set', 'eve', '--enabled', 'false');
    await dialog().getByRole('button', { name: 'Remove', exact: true }).click();
    await conflict.waitFor();
    await page().keyboard.press('Escape');
    await closed();
    const eve = JSON.parse(daemon.run('api', 'GET', 'users/eve')) as { role: string };
    assert.equal(eve.role, 'operator');
  });

  it('gives somebody a new password, which they change at the next login', async () => {
    await button('Change eve').click();
    await field('May log in').check();
    await button('Change').click();
    await closed();
    await button('New password for eve').click();
    await field('New password').fill(LATER);
    await field('The same again').fill(LATER);
    await button('Set it').click();
    await closed();
    await page().getByRole('row', { name: /eve operator/ }).getByText('has to change the password').waitFor();
    assert.equal((await enter('eve', OWN)).status, 401);
    assert.equal((await enter('eve', LATER)).status, 200);
  });

  it('removes a user whose name is typed, and never the last admin', async () => {
    await button('Remove eve').click();
    await confirm('eve', 'Remove');
    await page().getByRole('cell', { name: 'eve', exact: true }).waitFor({ state: 'detached' });
    await button('Remove admin').click();
    await field('Type admin to go on').fill('admin');
    await button('Remove').click();
    await dialog().getByRole('alert').getByText(/last admin/i).first().waitFor();
    await page().keyboard.press('Escape');
  });

  it('makes a token that is shown once, says when it was used, and revokes it', async () => {
    await link('Tokens').click();
    await button('Make a token').click();
    await field('What it is for').fill('prometheus');
    await field('Ends in days').fill('0');
    assert.equal(await button('Make it').isDisabled(), true);
    await field('Ends in days').fill('30');
    await button('Make it').click();
    const token = (await dialog('The token for prometheus').locator('pre').textContent())?.trim() ?? '';
    await button('I have it').click();
    await closed();
    const row = page().getByRole('row', { name: /prometheus/ });
    await row.getByText('never used').waitFor();
    assert.equal(await asked('luns', { authorization: `Bearer ${token}` }), 200);
    assert.equal((await page().content()).includes(token), false);
    await row.getByText('never used').waitFor({ state: 'detached' });
    await button('Revoke prometheus').click();
    await confirm('prometheus', 'Revoke');
    await row.waitFor({ state: 'detached' });
    await page().getByRole('row', { name: /^api\.token/ }).getByText('ends with its file').waitFor();
    assert.equal(await asked('status', { authorization: `Bearer ${token}` }), 401);
  });

  it('says that https is not served, and what it takes', async () => {
    await link('Certificate').click();
    await text('https is not served').first().waitFor();
    await text('listen = ["unix:/run/causeway/api.sock", "https://0.0.0.0:8443"]').waitFor();
  });

  it('says what this is, and under which licence', async () => {
    await link('About').click();
    await text('Apache License 2.0').waitFor();
    await page().getByRole('definition').filter({ hasText: 'san-b' }).waitFor();
  });

  it('shows where somebody is logged in, and ends the others', async () => {
    const other = await enter('admin', OWN);
    assert.equal(await asked('users', other.headers), 200);
    await link('My account').click();
    await text('another one').waitFor();
    await button('End the others').click();
    await confirm('admin', 'End them');
    await text('another one').waitFor({ state: 'detached' });
    assert.equal(await asked('users', other.headers), 401);
  });

  it('changes my own password, and I stay logged in', async () => {
    await button('Change my password').click();
    await field('The password you have').fill('it is not this one');
    await field('New password').fill(LATER);
    await field('The same again').fill(LATER);
    await button('Change it').click();
    await dialog().getByRole('alert').waitFor();
    await field('The password you have').fill(OWN);
    await button('Change it').click();
    await closed();
    await link('Users').click();
    await page().getByRole('cell', { name: 'admin (you)' }).waitFor();
    assert.equal((await enter('admin', OWN)).status, 401);
  });

  it('says that a session has ended, and goes on with what was begun', async () => {
    await browser.go('/luns/vm01?do=grow');
    await field('New size').fill('128M');
    await text('What it does').waitFor();
    const other = await enter('admin', LATER);
    assert.equal(await asked('me/sessions', other.headers, 'DELETE'), 200);
    await button('Set size').click();
    await text('Your session has ended.').waitFor();
    await field('Password').fill(LATER);
    await dialog('Log in').getByRole('button', { name: 'Log in', exact: true }).click();
    await dialog('Log in').waitFor({ state: 'detached' });
    await text('What it does').waitFor();
    await button('Set size').click();
    await closed();
    assert.match(daemon.run('lun', 'show', 'vm01', '-o', 'json'), /134217728/);
  });

  it('has who guesses passwords wait, and says how long', async () => {
    await browser.go('/settings/account');
    await button('Log out').click();
    // Each costs a longer wait than the one before: where a guess takes long, the wait of the first ones is over by the next.
    const told = text(/too many logins failed; try again in \d+ s/);
    let guesses = 0;
    for (; guesses < 20 && (await told.count()) === 0; guesses++) {
      await field('Password').fill(`guess number ${guesses}`);
      await Promise.all([page().waitForResponse('**/api/v1/login'), dialog().getByRole('button', { name: 'Log in', exact: true }).click()]);
      await dialog().getByRole('alert').waitFor();
      await browser.settled();
    }
    await told.waitFor();
    assert.ok(guesses > 5, `after ${guesses} guesses: five cost nothing`);
  });

  it('changes the schedule of scrubs at once, removes an unused pool, and names whom its restart hits', async () => {
    // Too many logins failed before: a token.
    const admin = await Browser.open(daemon.url);
    try {
      await enterWith(admin, daemon.token);
      await admin.go('/integrity');
      await admin.page.getByText('Another schedule').click();
      await admin.page.getByLabel('Each LUN every so many days').fill('14');
      await admin.page.getByText('scrub.every_days: nothing → 14').waitFor();
      await admin.page.getByRole('button', { name: 'Apply', exact: true }).click();
      await admin.page.getByText('In effect now: scrub.every_days').waitFor();
      assert.match(daemon.run('config', 'show'), /scrub\.every_days +14 +by config set/);
      await admin.go('/pools/fast');
      await admin.page.getByText('Remove this pool').click();
      await admin.page.getByRole('alert').getByText(/^LUN vm01, 128MiB: logged in: everyone$/).waitFor();
      const remove = admin.page.getByRole('button', { name: 'Remove', exact: true });
      assert.equal(await remove.isDisabled(), true);
      await admin.go('/pools/default');
      await admin.page.getByText('Remove this pool').click();
      await admin.page.getByText('pool[0].name: "default" → nothing').waitFor();
      await admin.page.getByText(/^nothing is deleted: .* stays as it is$/).waitFor();
      assert.equal(await remove.isDisabled(), true);
      await admin.page.getByLabel('Type default to go on').fill('default');
      await remove.click();
      await admin.page.getByText(/settings wait for a restart, which ends 1 session/).waitFor();
      await admin.go('/settings/node');
      await admin.page.getByRole('button', { name: 'Restart the daemon …' }).click();
      const box = admin.page.getByRole('dialog', { name: 'Restart the daemon' });
      await box.getByText(/^everyone: session \d+, LUN vm01$/).waitFor();
      assert.equal(await box.getByRole('button', { name: 'Restart', exact: true }).isDisabled(), true);
      await box.getByLabel('Type san-b to go on').fill('san-b');
      await box.getByRole('button', { name: 'Restart', exact: true }).click();
      // Who has logged in does so again, then.
      const login = admin.page.getByRole('dialog', { name: 'Log in' });
      await login.getByText(/^The daemon is back after \d+ s/).waitFor();
      await login.getByRole('button', { name: 'With a token' }).click();
      await login.getByLabel('Token').fill(daemon.token);
      await admin.page.keyboard.press('Enter');
      await login.waitFor({ state: 'hidden' });
      await admin.page.getByText(/^The daemon is back after \d+ s: what waited for it is now in effect: .*pool\[0\]/).first().waitFor();
      // It logs in again by itself.
      await until('the host is there again', () => daemon.run('session', 'ls').includes('iqn.2026-01.org:first'));
      assert.doesNotMatch(daemon.run('pool', 'ls'), /default/);
    } finally {
      await admin.close();
    }
  });
});
