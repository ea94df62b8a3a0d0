// How long tests wait for what must come. Where it comes it costs nothing; on a machine that has much else to do it comes late.

/** For one thing on the page, or of the daemon. */
export const PATIENCE_MS = Number(process.env['PAGE_PATIENCE'] ?? 60_000);
/** For what the daemon does at times of its own: rules of alerts, records of ten seconds. */
export const LATE_MS = 3 * PATIENCE_MS;
/** For a test that goes over every screen. */
export const LONG_MS = 15 * PATIENCE_MS;
