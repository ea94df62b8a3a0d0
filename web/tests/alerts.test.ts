// Alerts: they fire, somebody takes care of them, they are silenced, they are over, and they are sent.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, link, field, choose, text, dialog, closed, confirm } = steps(() => browser);

/** What was posted to the receiver. */
const posted: { headers: Record<string, unknown>; body: Record<string, unknown> }[] = [];
let hook: Server;

interface Shown {
  id: number;
  state: string;
  object: string;
  acknowledged?: { note: string };
}
const alerts = (): Shown[] => JSON.parse(daemon.run('alert', 'ls', '--resolved', '-o', 'json')) as Shown[];
const bell = (name: RegExp) => page().getByRole('banner').getByRole('link', { name });
const rule = (name: string) => page().getByRole('listitem').filter({ hasText: name });
const band = () => page().getByRole('region', { name: 'How the node is' });

describe('alerts', { skip }, () => {
  before(async () => {
    hook = createServer((request, answer) => {
      let body = '';
      request.on('data', (part: Buffer) => (body += part.toString()));
      request.on('end', () => {
        posted.push({ headers: request.headers, body: JSON.parse(body) as Record<string, unknown> });
        answer.end();
      });
    });
    await new Promise<void>((done) => hook.listen(0, '127.0.0.1', done));
    await daemon.start();
    daemon.run('lun', 'create', 'vm01', '--size', '64M');
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
    await browser.go('/alerts');
  });
  after(async () => {
    hook?.close();
    await end(browser, daemon);
  });

  it('says that nothing is wrong where nothing is, also at the bell', async () => {
    await text('Nothing is wrong that anybody has to know of.').waitFor();
    await bell(/^Alerts: none$/).waitFor();
  });

  it('adds a webhook, whose secrets it shows nowhere, and tries it', async () => {
    await button('Receivers').click();
    await button('Add a receiver').click();
    await field('Name').fill('ops');
    await field('Address').fill(`http://127.0.0.1:${(hook.address() as AddressInfo).port}/hooks/secret-path`);
    await field('Token, sent as Authorization: Bearer').fill('secret-token');
    await field('Gathered for seconds').fill('0');
    await text('causeway alert receiver create ops --url-file FILE --bearer-file FILE --group-seconds 0').waitFor({ state: 'attached' });
    assert.equal(await dialog().locator('pre', { hasText: 'secret-' }).count(), 0);
    await button('Add').click();
    await closed();
    await page().getByRole('row', { name: /ops posts to http:\/\/127.0.0.1:\d+/ }).waitFor();
    assert.equal(await page().getByText('secret-path').count(), 0);
    await button('Try ops').click();
    await button('Send a test').click();
    await closed();
    assert.equal(posted[0]?.headers['authorization'], 'Bearer secret-token');
    assert.equal(posted[0]?.body['test'], true);
  });

  it('says why a receiver could not be reached, and keeps its secrets when it is changed', async () => {
    await button('Add a receiver').click();
    await choose('How', 'mail');
    await field('Name').fill('mail');
    await field('Mail server').fill('127.0.0.1');
    await field('Port').fill('1');
    await choose('Encryption', 'none');
    await field('From').fill('san@example.com');
    await field('To').fill('admin@example.com, night@example.com');
    await text('causeway alert receiver create mail --server 127.0.0.1 --port 1 --encryption none --from san@example.com --to admin@example.com,night@example.com').waitFor({ state: 'attached' });
    await button('Add').click();
    await closed();
    await button('Try mail').click();
    await button('Send a test').click();
    await dialog().getByRole('alert').waitFor();
    await page().keyboard.press('Escape');
    await closed();
    await button('Change ops').click();
    await choose('Least severity', 'info');
    await button('Change').last().click();
    await closed();
    await page().getByRole('row', { name: /ops .* all / }).waitFor();
    await button('Try ops').click();
    await button('Send a test').click();
    await closed();
    assert.equal(posted.at(-1)?.headers['authorization'], 'Bearer secret-token');
  });

  it('runs a program that node.toml names, and removes a receiver whose name is typed', async () => {
    await button('Add a receiver').click();
    await choose('How', 'command');
    await field('Name').fill('pager');
    await field('Command').fill('pager');
    await button('Add').click();
    await closed();
    await button('Try pager').click();
    await button('Send a test').click();
    await closed();
    await button('Remove mail').click();
    await confirm('mail', 'Remove');
    await page().getByRole('row', { name: /^mail/ }).waitFor({ state: 'detached' });
  });

  it('changes the bounds of a rule, with the reason why some are none', async () => {
    await button('Rules').click();
    await rule('A pool fills up').getByRole('button', { name: 'Change' }).click();
    await field('Used, in percent').fill('2');
    await field('Fires after seconds').fill('0');
    await field('Over after seconds').fill('0');
    await button('Change').last().click();
    await dialog().getByRole('alert').getByText(/below_percent/).first().waitFor();
    await field('Less than this resolves it, in percent').fill('1');
    await text('causeway alert rule set pool_filling above_percent=2 below_percent=1 --hold 0 --clear 0').waitFor({ state: 'attached' });
    await button('Change').last().click();
    await closed();
    await rule('A pool fills up').getByText('changed').waitFor();
  });

  it('shows what fires with cause and next step, at the bell and first of all on the overview', async () => {
    await bell(/^Alerts: 1 warning$/).waitFor();
    await browser.go('/');
    await band().getByText('Everything serves, but a pool fills up. 1 thing to do.').waitFor();
    await band().getByText(/causeway lun ls --removed/).waitFor();
    await band().getByRole('link').first().click();
    await page().waitForURL('**/alerts/1');
    await page().getByRole('heading', { name: 'A pool fills up' }).waitFor();
    await text('It fired').waitFor();
    assert.deepEqual(alerts().map((one) => [one.id, one.state]), [[1, 'firing']]);
  });

  it('posts it to the receiver', async () => {
    await until('it was posted that one fires', () => posted.some((one) => one.body['fired'] === 1));
  });

  it('is acknowledged with a note, and the overview has nothing to do then', async () => {
    await button('Acknowledge').click();
    await field('What is done about it').fill('disk ordered');
    await text("causeway alert ack 1 --note 'disk ordered'").waitFor({ state: 'attached' });
    await dialog().getByRole('button', { name: 'Acknowledge', exact: true }).click();
    await closed();
    await text('disk ordered').first().waitFor();
    assert.equal(alerts()[0]?.acknowledged?.note, 'disk ordered');
    await bell(/^Alerts: none$/).waitFor();
    await browser.go('/');
    await band().getByText(/1 alert acknowledged or silenced/).waitFor();
    await browser.go('/alerts/1');
    await button('Take back the acknowledgement').click();
    await button('Take it back').click();
    await closed();
    await button('Acknowledge').waitFor();
  });

  it('is silenced for a time with a reason, which has an end', async () => {
    await button('Silence').click();
    await button('1 day').click();
    await field('Why').fill('power work');
    await text("causeway alert silence 1 --hours 24 --note 'power work'").waitFor({ state: 'attached' });
    await dialog().getByRole('button', { name: 'Silence', exact: true }).click();
    await closed();
    await text('warning, silenced').first().waitFor();
    assert.equal(alerts()[0]?.state, 'silenced');
    await browser.go('/alerts?show=silences');
    await page().getByRole('row', { name: /rule pool_filling.*power work.*1 alert/ }).waitFor();
    await button(/^End it/).click();
    await dialog().getByRole('button', { name: 'End it', exact: true }).click();
    await closed();
    await text('No alert is silenced.').waitFor();
  });

  it('silences all of objects that begin so', async () => {
    await button('Silence alerts').click();
    await field('Objects').fill('def*');
    await choose('Of kind', 'pool');
    await text("causeway alert silence --kind pool --object 'def*' --hours 4").waitFor({ state: 'attached' });
    await dialog().getByRole('button', { name: 'Silence', exact: true }).click();
    await closed();
    await page().getByRole('row', { name: /kind pool, object def\*.*1 alert/ }).waitFor();
    await button('Now').click();
    await text('warning, silenced').waitFor();
  });

  it('filters by words that stand in the address', async () => {
    await field('Filter alerts').fill('no such thing');
    await text('No alert fits the filter.').waitFor();
    await page().waitForURL('**/alerts?q=no*');
    await field('Filter alerts').fill('pool');
    await link('A pool fills up').waitFor();
    await field('Filter alerts').fill('');
  });

  it('is over by itself, with its history', async () => {
    daemon.run('alert', 'rule', 'set', 'pool_filling', 'above_percent=100', 'below_percent=99');
    await text('Nothing is wrong that anybody has to know of.').waitFor();
    await button('Over').click();
    await link('A pool fills up').click();
    await text('It is over').waitFor();
    assert.equal(await button('Acknowledge').count(), 0);
    await browser.go('/alerts?show=rules');
    await button('Reset rule pool_filling').click();
    await text(/above_percent goes from 100 back to 80/).waitFor();
    await confirm('pool_filling', 'Reset');
    assert.match(daemon.run('alert', 'rule', 'show', 'pool_filling'), /80 %/);
  });

  it('shows what another admin changed meanwhile of a rule and of a receiver, and takes theirs', async () => {
    const conflict = () => dialog().getByText('Somebody else has changed it since you opened this');
    await browser.go('/alerts?show=rules');
    await rule('A pool is nearly full').getByRole('button', { name: 'Change' }).click();
    await field('Fires after seconds').fill('7');
    daemon.run('alert', 'rule', 'set', 'pool_nearly_full', 'above_percent=93', '--severity', 'warning');
    await button('Change').last().click();
    await conflict().waitFor();
    await page().getByRole('row', { name: 'bounds.above_percent 90 93 as it is' }).waitFor();
    await page().getByRole('row', { name: 'hold_seconds 30 30 7' }).waitFor();
    await button('Take theirs').click();
    await conflict().waitFor({ state: 'detached' });
    assert.equal(await field('Used, in percent').inputValue(), '93');
    await page().keyboard.press('Escape');
    await closed();
    await browser.go('/alerts?show=receivers');
    await button('Change pager').click();
    await field('Reminder after hours').fill('5');
    daemon.run('alert', 'receiver', 'set', 'pager', '--least', 'critical');
    await button('Change').last().click();
    await conflict().waitFor();
    await page().getByRole('row', { name: /^least warning critical/ }).waitFor();
    await button('Change mine anew').click();
    await closed();
    const pager = JSON.parse(daemon.run('alert', 'receiver', 'show', 'pager', '-o', 'json')) as { least: string; remind_hours: number };
    assert.deepEqual([pager.least, pager.remind_hours], ['warning', 5]);
  });
});
