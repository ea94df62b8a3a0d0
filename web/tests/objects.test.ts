// Hosts, targets, grants and LUNs are made, changed and taken away; and two people change one of them.

import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { logIn } from './furnish.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, link, field, choose, text, dialog, closed, confirm } = steps(() => browser);

const WEB = 'iqn.2026-01.org.debian:web';
const HOSTILE = '<img src=x onerror=document.title=1>';

/** An object as the daemon has it. */
const shown = (kind: string, name: string) => JSON.parse(daemon.run(kind, 'show', name, '-o', 'json')) as Record<string, unknown>;
/** Somebody else changes something, with another tool. */
const other = (...args: string[]) => daemon.run(...args);
const conflict = () => dialog().getByText('Somebody else has changed it since you opened this');

describe('objects', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('share', 'create', 'vm01', '--size', '64M', '--target', 'vms', '--for', WEB);
    daemon.run('lun', 'create', 'spare', '--size', '32M');
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
    await browser.go('/hosts');
  });
  after(() => end(browser, daemon));

  it('adds a host for several initiators', async () => {
    await button('Add a host').click();
    await field('Name').fill('esx01');
    await field('iSCSI names of its initiators').fill('iqn.1998-01.com.vmware:esx01, iqn.1998-01.com.vmware:esx01-b');
    await text('causeway host create esx01 --iqn iqn.1998-01.com.vmware:esx01 --iqn iqn.1998-01.com.vmware:esx01-b').waitFor({ state: 'attached' });
    await text(/create host\s+esx01/).waitFor();
    await button('Add').click();
    await closed();
    assert.deepEqual(shown('host', 'esx01')['iqn'], ['iqn.1998-01.com.vmware:esx01', 'iqn.1998-01.com.vmware:esx01-b']);
  });

  it('says which member of a form the daemon refuses', async () => {
    await button('Add a host').click();
    await field('Name').fill('esx01');
    await field('iSCSI names of its initiators').fill('no iscsi name');
    await dialog().getByRole('alert').waitFor();
    await page().keyboard.press('Escape');
    await closed();
  });

  it('gives a host CHAP, shows its secret nowhere, and believes its name again', async () => {
    await link('web').click();
    await page().waitForURL('**/hosts/web');
    await button('Settings').click();
    await field('CHAP user').fill('web');
    await field('Its secret').fill('short');
    assert.equal(await button('Set').isDisabled(), true);
    await field('Its secret').fill('sixteen letters!');
    await text('causeway host set web chap.user=web chap.secret_file=FILE').waitFor({ state: 'attached' });
    assert.equal(await dialog().locator('pre', { hasText: 'sixteen' }).count(), 0);
    await button('Set').click();
    await closed();
    await text('as web').waitFor();
    assert.notEqual(logIn(daemon, 'vms', WEB), 0);
    await button('Settings').click();
    await field('CHAP user').fill('');
    await text('causeway host set web chap=none').waitFor({ state: 'attached' });
    await button('Set').click();
    await closed();
    await text('none: its name is believed').waitFor();
    assert.equal(logIn(daemon, 'vms', WEB), 0);
  });

  it('grants a LUN to a host, changes its number and right, and takes it away', async () => {
    await button('Grant a LUN').click();
    await choose('LUN', 'spare');
    await text(/create grant/).waitFor();
    await button('Grant').click();
    await closed();
    await button('Change web:vms:spare').click();
    await field('Number by which the host knows the LUN').fill('77777');
    assert.equal(await button('Set').isDisabled(), true);
    await field('Number by which the host knows the LUN').fill('7');
    await field('The host may only read').check();
    await text('causeway grant set web:vms:spare lun_id=7 read_only=true').waitFor({ state: 'attached' });
    await button('Set').click();
    await closed();
    await page().getByRole('row', { name: /spare vms 7 read only/ }).waitFor();
    await button('Take away web:vms:spare').click();
    await confirm('web', 'Take away');
    await page().getByRole('row', { name: /spare vms/ }).waitFor({ state: 'detached' });
  });

  it('renames a host and deletes it, with what it may use', async () => {
    await browser.go('/hosts/esx01?do=rename');
    await field('New name').fill('esx-old');
    await button('Rename').last().click();
    await page().waitForURL('**/hosts/esx-old');
    await button('Delete').click();
    await confirm('esx-old', 'Delete');
    await page().waitForURL('**/hosts');
    await link('esx-old').waitFor({ state: 'detached' });
  });

  it('adds a target, and shows where it is reached', async () => {
    await browser.go('/targets');
    await button('Add a target').click();
    await field('Name').fill('backup');
    await text('causeway target create backup').waitFor({ state: 'attached' });
    await button('Add').click();
    await page().waitForURL('**/targets/backup');
    await text('iqn.2026-11.io.causeway:backup').waitFor();
    await text('takes logins').waitFor();
  });

  it('sends a target into maintenance, which refuses logins, and back', async () => {
    await browser.go('/targets/vms?do=set');
    await field('In maintenance: logins are refused for now, and sessions are asked to log out').check();
    await button('Set').click();
    await closed();
    await text('in maintenance').first().waitFor();
    assert.notEqual(logIn(daemon, 'vms', WEB), 0);
    await button('Settings').click();
    await field('In maintenance: logins are refused for now, and sessions are asked to log out').uncheck();
    await button('Set').click();
    await closed();
    assert.equal(logIn(daemon, 'vms', WEB), 0);
  });

  it('sends logins of a target elsewhere, and lifts it', async () => {
    await button('Settings').click();
    await field('Send logins to another portal').fill('192.0.2.2:3260');
    await text('causeway target set vms redirect=192.0.2.2:3260').waitFor({ state: 'attached' });
    await button('Set').click();
    await closed();
    await text('logins go to 192.0.2.2:3260').waitFor();
    await button('Settings').click();
    await field('Send logins to another portal').fill('');
    await button('Set').click();
    await closed();
    await text('takes logins').waitFor();
  });

  it('deletes a target whose name is typed', async () => {
    await browser.go('/targets/backup');
    await button('Delete').click();
    await confirm('backup', 'Delete');
    await page().waitForURL('**/targets');
    await link('backup').waitFor({ state: 'detached' });
  });

  it('shows portals, and what others would change; where that is fixed, the text for node.toml', async () => {
    await button('Portals').click();
    await page().getByRole('cell', { name: /^127.0.1.1:/ }).waitFor();
    const portals = field('Addresses or interfaces');
    // Nobody has changed the first password yet: other machines are not let in.
    const refusal = page().getByRole('alert');
    await portals.fill('0.0.0.0');
    await refusal.getByText('The first password has to be changed first').waitFor();
    await refusal.getByText(/causeway user set admin --password/).waitFor();
    const secret = join(daemon.dir, 'of-admin');
    writeFileSync(secret, 'five words of the admin', { mode: 0o600 });
    daemon.run('user', 'set', 'admin', '--password-file', secret);
    await portals.fill('nothere0');
    await refusal.getByText(/this machine has no interface "nothere0"/).waitFor();
    await portals.fill('127.0.1.1, 127.0.2.1, 127.0.3.1');
    await text(/portal_group\[0\]\.listen: .*127\.0\.3\.1/).waitFor();
    assert.equal(await button('Apply').isEnabled(), true);
    await page().route('**/api/v1/config', async (route) => {
      const config = (await (await route.fetch()).json()) as Record<string, unknown>;
      await route.fulfill({ json: { ...config, fixed: 'node.toml says change_settings = false below [api]' } });
    });
    await text('It cannot be changed here: node.toml says change_settings = false below [api].').waitFor();
    await text(/\{ ip = "127.0.3.1", port = \d+ \}/).waitFor();
    await page().unroute('**/api/v1/config');
  });

  it('shows before limits of a LUN are set that they are live', async () => {
    await browser.go('/luns/vm01?do=set');
    await field('Operations a second at most').fill('500');
    await field('Shares of its pool').fill('20');
    await text('causeway lun set vm01 shares=20 limit.iops=500').waitFor({ state: 'attached' });
    // The plan says it of both; the form's own hint is there at once.
    await dialog().locator('span').getByText('live', { exact: true }).nth(1).waitFor();
    await button('Set').click();
    await closed();
    assert.deepEqual(shown('lun', 'vm01')['limit'], { iops: 500 });
  });

  it('shows what another admin changed meanwhile, and takes theirs', async () => {
    await button('Settings').click();
    await field('Operations a second at most').fill('900');
    other('lun', 'set', 'vm01', 'limit.iops=700');
    await button('Set').click();
    await conflict().waitFor();
    await page().getByRole('row', { name: 'limit.iops 500 700 900' }).waitFor();
    assert.deepEqual(shown('lun', 'vm01')['limit'], { iops: 700 });
    await button('Take theirs').click();
    await conflict().waitFor({ state: 'detached' });
    assert.equal(await field('Operations a second at most').inputValue(), '700');
    await page().keyboard.press('Escape');
    await closed();
  });

  it('applies mine anew over what another admin changed, for who says so', async () => {
    await browser.go('/luns/vm01?do=grow');
    await field('New size').fill('128M');
    other('lun', 'set', 'vm01', 'shares=30');
    await button('Set size').click();
    await conflict().waitFor();
    await page().getByRole('row', { name: 'shares 20 30 as it is' }).waitFor();
    await button('Set size mine anew').click();
    await closed();
    assert.deepEqual([shown('lun', 'vm01')['size'], shown('lun', 'vm01')['shares']], [134_217_728, 30]);
  });

  it('does not delete a LUN, a target, a grant or a host that is another one by now', async () => {
    const cases: [string, string, () => Promise<void>, string][] = [
      ['/luns/spare?do=delete', 'spare', async () => void other('lun', 'set', 'spare', 'shares=5'), 'Delete'],
      ['/targets/vms?do=delete', 'vms', async () => void other('target', 'set', 'vms', 'maintenance_grace_seconds=31'), 'Delete'],
      ['/hosts/web?do=delete', 'web', async () => void other('host', 'set', 'web', 'bytes_in_flight_max=1M'), 'Delete'],
    ];
    for (const [path, name, meanwhile, verb] of cases) {
      await browser.go(path);
      await field(`Type ${name} to go on`).fill(name);
      await meanwhile();
      await dialog().getByRole('button', { name: verb, exact: true }).click();
      await conflict().waitFor();
      await page().keyboard.press('Escape');
      await closed();
    }
    assert.ok(shown('lun', 'spare') && shown('target', 'vms') && shown('host', 'web'));
  });

  it('says that an object is gone that somebody else deleted', async () => {
    await browser.go('/luns/spare?do=rename');
    await field('New name').fill('spare-2');
    other('lun', 'delete', 'spare');
    await button('Rename').last().click();
    await dialog().getByRole('alert').waitFor();
    await page().keyboard.press('Escape');
    await closed();
  });

  it('undoes a deletion from the list of what was deleted', async () => {
    await browser.go('/luns?show=deleted');
    await link('spare').click();
    await button('Restore').click();
    await dialog().getByRole('button', { name: 'Restore', exact: true }).click();
    await closed();
    await button('Grow').waitFor();
    assert.equal(shown('lun', 'spare')['state'], 'online');
  });

  it('offers to undo a deletion and a grant that was taken away, with its number', async () => {
    const offered = (what: string) => page().getByRole('status').getByRole('button', { name: `Undo : ${what}: done` }).last();
    await browser.go('/luns/spare?do=delete');
    await confirm('spare', 'Delete');
    await button('Restore').waitFor();
    await offered('Delete LUN spare').click();
    await page().getByRole('status').getByText('Restore LUN spare: done').waitFor();
    await button('Grow').waitFor();
    assert.equal(shown('lun', 'spare')['state'], 'online');
    other('grant', 'create', 'web', 'spare', '--target', 'vms', '--lun-id', '7');
    await browser.go('/luns/spare?show=hosts');
    await button('Take away web:vms:spare').click();
    await confirm('web', 'Take away');
    await offered('Take LUN spare away from host web').click();
    await page().getByRole('status').getByText('Grant LUN spare to host web again: done').waitFor();
    await page().getByRole('row', { name: /web vms 7/ }).waitFor();
    other('grant', 'delete', 'web:vms:spare');
    await browser.go('/luns/spare?do=rename');
    await field('New name').fill('extra');
    await button('Rename').last().click();
    await page().waitForURL('**/luns/extra');
    await offered('Rename LUN spare').click();
    await page().getByRole('status').getByText('Rename LUN extra: done').waitFor();
    assert.equal(shown('lun', 'spare')['name'], 'spare');
  });

  it('gives a table as a file: what is filtered, in the order that is seen', async () => {
    for (const [name, size] of [['big', '96M'], ['small', '32M']]) other('lun', 'create', `file-${name}`, '--size', size!, '--backend', 'memory');
    await browser.go('/luns?q=file-&sort=-size');
    await text('2 LUNs').waitFor();
    const saved = async (kind: string) => {
      const [file] = await Promise.all([page().waitForEvent('download'), button(`${kind} of LUNs`).click()]);
      assert.equal(file.suggestedFilename(), `luns.${kind.toLowerCase()}`);
      return readFileSync(await file.path(), 'utf8');
    };
    const rows = (await saved('CSV')).split('\r\n');
    assert.deepEqual(rows.slice(1).map((row) => row.split(',')[0]), ['file-big', 'file-small', '']);
    const all = JSON.parse(await saved('JSON')) as { name: string; size: number }[];
    assert.deepEqual(all.map((one) => [one.name, one.size]), [['file-big', 96 << 20], ['file-small', 32 << 20]]);
    for (const name of ['file-big', 'file-small']) other('lun', 'delete', name);
  });

  it('destroys the data of a deleted LUN only for who types its name', async () => {
    other('lun', 'delete', 'spare');
    await browser.go('/luns/spare?do=purge');
    await dialog().getByText('This cannot be undone.').waitFor();
    await confirm('spare', 'Destroy');
    await page().waitForURL('**/luns');
  });

  it('scrubs a LUN, and says how far it is', async () => {
    await browser.go('/luns/vm01?do=scrub');
    await button('Start').click();
    await closed();
    const onPage = page().getByRole('region', { name: 'Scrub: all of it read and compared' });
    await onPage.getByRole('img', { name: /of .* read, 0 places with findings/ }).waitFor();
    await browser.go('/integrity');
    await text('nothing found').first().waitFor();
  });

  it('shows when each LUN was read whole, the worst first, also by keyboard', async () => {
    daemon.run('lun', 'create', 'unread', '--size', '16M');
    await browser.go('/integrity');
    const table = page().getByRole('table', { name: 'LUNs by when they were read whole' });
    const first = table.getByRole('row').nth(1);
    await first.getByText('never', { exact: true }).first().waitFor();
    // Read again after the scrub of the test before, within one list's age.
    await table.getByRole('row', { name: /vm01/ }).getByText('within 30 days').waitFor();
    const map = page().getByRole('application', { name: /LUNs by when they were read whole/ });
    await map.focus();
    await page().keyboard.press('End');
    await text(/vm01: .* ago/).waitFor();
    await page().keyboard.press('Enter');
    await page().waitForURL('**/luns/vm01');
  });

  it('ends a session of a host whose name is typed', async () => {
    daemon.load(WEB, 41, 1, 'vms', 0, '-o1', '-g100');
    await browser.go('/hosts/web');
    // The one that works: the initiator's first look at the target is over by then.
    await page().locator('summary').filter({ hasText: /[1-9]\d* commands\/s/ }).first().click();
    await button('End this session').filter({ visible: true }).click();
    // Whom it hits, what goes over it, and that it is the host's only way.
    await dialog().getByText(/^host web: .* to vms, .*\/s go over it now$/).waitFor();
    await dialog().getByText(/: its last path to it$/).first().waitFor();
    await dialog().getByText('The same as a command line').click();
    await dialog().getByText(/^causeway session drop \d+ --yes$/).waitFor();
    await confirm('web', 'End it');
  });

  it('shows what node.toml says, where, and what of it is not in force', async () => {
    await browser.go('/settings/node');
    await text('All that the file says is in force').waitFor();
    await page().getByRole('row', { name: /^node\.name .*"san-a".* 3$/ }).waitFor();
    appendFileSync(join(daemon.dir, 'node.toml'), '[scrub]\nevery_days = 30\n');
    await text('1 key of the file is not in force: a reload takes it, and ends 0 sessions').waitFor();
    await button('not in force').click();
    await page().getByRole('row', { name: /^scrub\.every_days .*the file says now: 30/ }).waitFor();
    await browser.go('/integrity');
    await text('No schedule: LUNs are scrubbed when somebody asks.').waitFor();
    await text('Another schedule').click();
    await field('Each LUN every so many days').fill('7');
    await text('scrub.every_days: 30 → 7').waitFor();
    await text('causeway config set --scrub-every 7').waitFor({ state: 'attached' });
    await text('One setting of the file waits for a reload, which ends no session').waitFor();
  });

  it('shows what another admin made of the settings meanwhile, takes theirs, and sets its own at once', async () => {
    other('config', 'set', '--scrub-every', '9');
    await button('Apply').click();
    const changed = text('Somebody else has changed it since you opened this');
    await changed.waitFor();
    await page().getByRole('row', { name: 'scrub.every_days 30 9 7' }).waitFor();
    assert.match(daemon.run('config', 'show'), /scrub\.every_days +9 +by config set/);
    await button('Take theirs').click();
    await changed.waitFor({ state: 'detached' });
    await field('Each LUN every so many days').fill('7');
    await text('scrub.every_days: 9 → 7').waitFor();
    await text('It is in effect at once, and ends no session.').waitFor();
    await button('Apply').click();
    await text('In effect now: scrub.every_days').waitFor();
    await text('Each LUN is scrubbed every 7 days').waitFor();
  });

  it('changes a setting by its key, and says which of two waits for a restart', async () => {
    await browser.go('/settings/node');
    await choose('Setting', 'session.login_seconds');
    await field('Value').fill('0');
    await page().getByRole('alert').getByText(/session\.login_seconds/).first().waitFor();
    await field('Value').fill('20');
    await text('session.login_seconds: nothing → 20').waitFor();
    await text('causeway config set session.login_seconds=20').waitFor({ state: 'attached' });
    await button('Apply').click();
    await text('In effect now: session.login_seconds').waitFor();
    await page().getByRole('row', { name: /^session\.login_seconds .*20.* at once changed here$/ }).waitFor();
    await choose('Setting', 'runtime.poll_us');
    await field('Value').fill('5');
    await text('It is kept now, and comes into force with a restart of the daemon.').waitFor();
    await button('Apply').click();
    await text('One setting waits for a restart').waitFor();
  });

  it('shows hostile names of hosts, LUNs and targets as the text that they are', async () => {
    const renamed = (kind: string) => page().route(`**/api/v1/${kind}`, async (route) => {
      const rows = (await (await route.fetch()).json()) as Record<string, unknown>[];
      await route.fulfill({ json: rows.map((row) => ({ ...row, name: `${HOSTILE}${String(row['name'])}` })) });
    });
    for (const kind of ['luns?without=ops', 'hosts', 'targets', 'pools']) await renamed(kind);
    for (const path of ['/luns', '/hosts', '/targets', '/pools', '/topology', '/topology?as=list', '/integrity']) {
      await page().goto(path);
      await text(HOSTILE).first().waitFor({ state: 'attached' });
      assert.equal(await page().locator('main img, nav img').count(), 0, path);
    }
    await page().keyboard.press('Control+k');
    await page().getByRole('combobox').fill('<img');
    await page().getByRole('option').first().waitFor();
    assert.equal(await page().locator('dialog img').count(), 0);
    assert.notEqual(await page().title(), '1');
    await page().unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('keeps an address that tries to be markup or another place as the text that it is', async () => {
    await page().goto(`/luns/${encodeURIComponent(HOSTILE)}`);
    await page().getByRole('heading', { name: HOSTILE }).waitFor();
    await page().goto('/luns?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E');
    await text('No LUN fits the filter.').waitFor();
    assert.equal(await page().locator('main script, main img').count(), 0);
  });
});
