// What programs for Node do with files: streams, a pipeline with compression, promises, synchronous calls, workers, a child.
// Prints a digest of each file that it leaves.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');
const crypto = require('crypto');
const { pipeline } = require('stream/promises');
const { execFileSync, spawnSync } = require('child_process');

const LINES = 20000, WORKERS = 4;

function digest(file) {
  return crypto.createHash('sha256').update(fs.readFileSync(file)).digest('hex');
}

async function work(number) {
  const file = `worker.${number}`;
  const out = fs.createWriteStream(file, { highWaterMark: 4096 });
  for (let i = 0; i < LINES; i++)
    if (!out.write(`${number} ${i} ${i * i}\n`))
      await new Promise(resolve => out.once('drain', resolve));
  await new Promise(resolve => out.end(resolve));
  const descriptor = fs.openSync(file, 'r+');
  for (let i = 0; i < 200; i++)
    fs.writeSync(descriptor, Buffer.from('+'), 0, 1, i * 100);
  fs.fsyncSync(descriptor);
  fs.closeSync(descriptor);
  return digest(file);
}

async function main() {
  const results = await Promise.all(Array.from({ length: WORKERS }, (_, number) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: number });
    worker.once('message', resolve);
    worker.once('error', reject);
  })));
  results.forEach((result, number) => console.log(number, result));
  await pipeline(fs.createReadStream('worker.0'), zlib.createGzip({ level: 1 }), fs.createWriteStream('packed'));
  await pipeline(fs.createReadStream('packed'), zlib.createGunzip(), fs.createWriteStream('unpacked'));
  console.log(digest('unpacked') === results[0]);
  fs.mkdirSync('many');
  await Promise.all(Array.from({ length: 300 }, (_, i) => fs.promises.writeFile(`many/${i}`, 'x'.repeat(i))));
  for (const name of fs.readdirSync('many').filter(name => name % 3 === 0))
    fs.unlinkSync(path.join('many', name));
  fs.copyFileSync('worker.1', 'copy');
  fs.appendFileSync('copy', 'end\n');
  fs.truncateSync('worker.2', 1000);
  fs.renameSync('worker.3', 'renamed');
  console.log(fs.readdirSync('many').length, fs.statSync('worker.2').size, digest('copy'));
  console.log(execFileSync('wc', ['-c', 'copy']).toString().trim());
  const child = spawnSync(process.execPath, ['-e', "require('fs').writeFileSync('child', 'y'.repeat(70000)); process.exit(5)"]);
  console.log(child.status, fs.statSync('child').size);
  try {
    fs.openSync('missing', 'r');
  } catch (error) {
    console.log(error.code);
  }
  process.exitCode = 3;
}

if (isMainThread)
  main();
else
  work(workerData).then(result => parentPort.postMessage(result));
