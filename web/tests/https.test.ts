// The page over https, and the certificate that it is served with.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { end, enter, steps } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon(true);
let browser: Browser;
const { page, text } = steps(() => browser);

/** What a client is shown. */
function served(): Promise<X509Certificate> {
  const port = Number(new URL(daemon.secureUrl).port);
  return new Promise((done, failed) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.end();
      if (certificate) done(certificate);
      else failed(new Error('no certificate'));
    });
    socket.on('error', failed);
  });
}

describe('the page over https', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('lun', 'create', 'vm01', '--size', '64M');
    browser = await Browser.open(daemon.secureUrl);
    await enter(browser, daemon.token);
  });
  after(() => end(browser, daemon));

  it('is live, and shows the certificate that it is served with', async () => {
    await page().getByRole('banner').getByText('live', { exact: true }).waitFor();
    await browser.go('/settings/certificate');
    await text('made by the daemon, which makes it anew in time').waitFor();
    const certificate = await served();
    const shown = (await page().getByRole('region', { name: 'What https is served with' }).textContent()) ?? '';
    const plain = (words: string) => words.replaceAll(/[:\s]/g, '').toLowerCase();
    assert.ok(plain(shown).includes(plain(certificate.fingerprint256)), shown);
    await text(daemon.secureUrl).waitFor();
    await text(/, in \d[\d,]* days$/).first().waitFor();
  });
});
