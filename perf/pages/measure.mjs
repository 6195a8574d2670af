// Audits pages with Lighthouse. The only argument is JSON: {chromium, flags, cookie, audits}, an audit
// {name, url, form}. Prints a JSON object for each audit, as soon as it has ended.
// An audit that fails is repeated after all others.
import * as launcher from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

const categories = ["performance", "accessibility", "best-practices"];
const figures = {
  shift: "cumulative-layout-shift",
  blocked_ms: "total-blocking-time",
  first_ms: "first-contentful-paint",
  largest_ms: "largest-contentful-paint",
  bytes: "total-byte-weight",
};

/** Ids of the audits of a category that count and are not passed in full. */
function failed(category, audits) {
  return category.auditRefs
    .filter(({ id, weight }) => weight > 0 && audits[id].score !== null && audits[id].score < 0.9)
    .map(({ id }) => id);
}

/** Selectors of the elements that moved, those that moved most first. */
function listMoved(audits) {
  const items = audits["layout-shifts"]?.details?.items ?? [];
  return items.map(({ node }) => node?.selector ?? "an element that is gone");
}

// A cookie of the browser: requests of scripts would lack a header that Lighthouse sets.
async function signIn(port, url, cookie) {
  const browser = await puppeteer.connect({ browserURL: `http://127.0.0.1:${port}` });
  const [name, value] = cookie.split("=");
  await browser.setCookie({
    name,
    value,
    domain: new URL(url).hostname,
    path: "/",
    httpOnly: true,
  });
  await browser.disconnect();
}

async function audit({ name, url, form }, port, cookie) {
  await signIn(port, url, cookie);
  const flags = { port, logLevel: "silent", onlyCategories: categories };
  const { lhr } = await lighthouse(url, flags, form === "desktop" ? desktopConfig : undefined);
  if (lhr.runtimeError) throw new Error(`${url}: ${lhr.runtimeError.message}`);
  const { pathname } = new URL(lhr.finalDisplayedUrl);
  if (pathname !== new URL(url).pathname) throw new Error(`${url} led to ${pathname}`);
  const entries = Object.entries(lhr.categories);
  return {
    name,
    form,
    ...Object.fromEntries(
      entries.map(([id, { score }]) => [id.replace("-", "_"), Math.round(score * 100)]),
    ),
    ...Object.fromEntries(
      Object.entries(figures).map(([key, id]) => [key, lhr.audits[id].numericValue]),
    ),
    moved: listMoved(lhr.audits),
    failed: entries.flatMap(([, category]) => failed(category, lhr.audits)),
  };
}

/** Audit in a separate browser. Repeat it if Chromium did not finish the trace. */
async function auditWithRetries(each, { chromium, flags, cookie }, tries = 3) {
  const chrome = await launcher.launch({
    chromePath: chromium,
    chromeFlags: ["--headless=new", ...flags],
  });
  try {
    return await audit(each, chrome.port, cookie);
  } catch (error) {
    if (tries === 1) throw error;
    console.error(`again: ${error.message}`);
  } finally {
    await chrome.kill();
  }
  return auditWithRetries(each, { chromium, flags, cookie }, tries - 1);
}

// More failures than this have a cause that a repetition does not remove.
const maxFailures = 5;

/** Print the result of each audit. Return those that failed with every retry. */
async function printResults(audits, plan) {
  const failures = [];
  for (const each of audits) {
    if (failures.length > maxFailures) throw new Error(`${failures.length} audits failed`);
    try {
      console.log(JSON.stringify(await auditWithRetries(each, plan)));
    } catch (error) {
      console.error(`failed: ${error.message}`);
      failures.push(each);
    }
  }
  return failures;
}

// A machine that is busy for some minutes must not cost the audits of an hour.
const plan = JSON.parse(process.argv[2]);
const postponed = await printResults(plan.audits, plan);
const failures = await printResults(postponed, plan);
process.exitCode = failures.length > 0 ? 1 : 0;
