// The packages that programs use, against a server whose model says what run.py has chosen.
// Arguments: the address and the case.
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool as agentTool }
    from "@openai/agents";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool, ToolLoopAgent }
    from "ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { z } from "zod";

const [url, name] = process.argv.slice(2);
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
const ollama = new Ollama({ host: url });
const provider = createOpenAICompatible({ name: "memwall", baseURL: `${url}/v1`,
    includeUsage: true, supportsStructuredOutputs: true });
const messages = [{ role: "user", content: "hi" }];
const parameters = { type: "object", properties: { a: { type: "string" } } };
const tools = ["f", "g"].map((n) => ({
    type: "function", function: { name: n, description: n, parameters } }));

const model = (await openai.models.list()).data[0].id;

const vercel = { model: provider(model), messages, maxRetries: 0 };
const parts = async (stream) => {
    const all = [];
    for await (const part of stream.fullStream)
        all.push(part);
    return all;
};

const cases = {
    // thinks "ab", answers "Hey."
    async text() {
        const whole = await openai.chat.completions.create({ model, messages });
        assert.equal(whole.choices[0].message.content, "Hey.");
        assert.equal(whole.choices[0].message.reasoning_content, "ab");
        assert.ok(whole.usage.prompt_tokens > 0);

        let text = "", usage;
        for await (const part of await openai.chat.completions.create(
            { model, messages, stream: true, stream_options: { include_usage: true } })) {
            text += part.choices[0]?.delta?.content ?? "";
            usage = part.usage ?? usage;
        }
        assert.equal(text, "Hey.");
        assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);

        const runner = openai.chat.completions.stream({ model, messages });
        assert.equal((await runner.finalChatCompletion()).choices[0].message.content, "Hey.");

        const message = await anthropic.messages.create({ model, messages, max_tokens: 50 });
        assert.deepEqual(message.content.map((b) => b.type), ["thinking", "text"]);
        assert.equal(message.content[1].text, "Hey.");
        assert.equal(message.stop_reason, "end_turn");
        const stream = anthropic.messages.stream({ model, messages, max_tokens: 50 });
        const final = await stream.finalMessage();
        assert.equal(final.content[1].text, "Hey.");
        assert.equal(final.content[0].thinking, "ab");
        assert.ok(final.usage.output_tokens > 0);

        assert.equal((await ollama.chat({ model, messages })).message.content, "Hey.");
        text = "";
        for await (const part of await ollama.chat({ model, messages, stream: true }))
            text += part.message.content;
        assert.equal(text, "Hey.");
        assert.equal((await ollama.generate({ model, prompt: "hi" })).response, "Hey.");
        assert.equal((await ollama.list()).models[0].name, model);
        assert.ok((await ollama.show({ model })).capabilities.includes("completion"));

        const completion = await openai.completions.create({ model, prompt: "a\n</think>",
            max_tokens: 4 });
        assert.equal(completion.choices[0].text, "Hey.");

        const generated = await generateText(vercel);
        assert.equal(generated.text, "Hey.");
        assert.equal(generated.reasoningText, "ab");
        assert.equal(generated.finishReason, "stop");
        assert.ok(generated.usage.inputTokens > 0 && generated.usage.outputTokens > 0);
        const streaming = streamText(vercel);
        text = "";
        for await (const part of streaming.textStream)
            text += part;
        assert.equal(text, "Hey.");
        assert.equal(await streaming.reasoningText, "ab");
        assert.equal((await streaming.usage).outputTokens, generated.usage.outputTokens);
    },

    // says "Ok" and calls f and g
    async tools() {
        const first = (await openai.chat.completions.create({ model, messages, tools }))
            .choices[0];
        assert.equal(first.finish_reason, "tool_calls");
        assert.deepEqual(first.message.tool_calls.map((c) =>
            [c.function.name, JSON.parse(c.function.arguments)]), [["f", { a: "x" }], ["g", {}]]);
        const results = first.message.tool_calls.map((c) =>
            ({ role: "tool", tool_call_id: c.id, content: "42" }));
        await openai.chat.completions.create(
            { model, messages: [...messages, first.message, ...results], tools });

        const runner = openai.chat.completions.stream({ model, messages, tools });
        const streamed = (await runner.finalChatCompletion()).choices[0].message.tool_calls;
        assert.deepEqual(streamed.map((c) => c.function.name), ["f", "g"]);

        const own = tools.map((t) => ({ name: t.function.name, description: "d",
            input_schema: parameters }));
        const whole = await anthropic.messages.create(
            { model, messages, max_tokens: 99, tools: own });
        assert.equal(whole.stop_reason, "tool_use");
        const uses = (await anthropic.messages.stream(
            { model, messages, max_tokens: 99, tools: own }).finalMessage()).content
            .filter((b) => b.type === "tool_use");
        assert.deepEqual(uses.map((u) => [u.name, u.input]), [["f", { a: "x" }], ["g", {}]]);
        await anthropic.messages.create({ model, max_tokens: 99, tools: own, messages: [
            ...messages, { role: "assistant", content: whole.content },
            { role: "user", content: uses.map((u) =>
                ({ type: "tool_result", tool_use_id: u.id, content: "42" })) }] });

        const calls = (await ollama.chat({ model, messages, tools })).message.tool_calls;
        assert.deepEqual(calls.map((c) => [c.function.name, c.function.arguments]),
            [["f", { a: "x" }], ["g", {}]]);

        const done = [];
        const set = Object.fromEntries(["f", "g"].map((n) => [n, tool({ description: n,
            inputSchema: jsonSchema(parameters), execute: async (input) => {
                done.push([n, input]);
                return "42";
            } })]));
        const want = [["f", { a: "x" }], ["g", {}]];
        const steps = (await generateText({ ...vercel, tools: set, stopWhen: stepCountIs(2) }))
            .steps;
        assert.equal(steps.length, 2); // the results went back
        for (const step of steps) {
            assert.deepEqual(step.toolCalls.map((c) => [c.toolName, c.input]), want);
            assert.equal(step.text, "Ok");
            assert.equal(step.finishReason, "tool-calls");
        }
        assert.deepEqual(done, [...want, ...want]);
        const seen = await parts(streamText({ ...vercel, tools: set }));
        assert.deepEqual(seen.filter((p) => p.type === "tool-call")
            .map((p) => [p.toolName, p.input]), want);
        assert.equal(seen.filter((p) => p.type === "tool-result").length, 2);
        assert.equal(seen.filter((p) => p.type === "error").length, 0);
    },

    // says tokens at random: only the form that is demanded makes sense of them
    async forms() {
        const schema = { type: "object", required: ["kind", "n"], additionalProperties: false,
            properties: { kind: { enum: ["a", "bc"] }, n: { type: "integer", minimum: 1,
                maximum: 12 } } };
        const check = (text) => {
            const v = JSON.parse(text);
            assert.ok(["a", "bc"].includes(v.kind) && v.n >= 1 && v.n <= 12, text);
        };
        const response_format = { type: "json_schema",
            json_schema: { name: "s", strict: true, schema } };
        const whole = await openai.chat.completions.create(
            { model, messages, response_format, logprobs: true, top_logprobs: 2 });
        check(whole.choices[0].message.content);
        const tokens = whole.choices[0].logprobs.content;
        assert.equal(tokens.map((t) => t.token).join(""), whole.choices[0].message.content);
        assert.equal(tokens[0].top_logprobs.length, 2);
        const runner = openai.chat.completions.stream({ model, messages, response_format });
        check((await runner.finalChatCompletion()).choices[0].message.content);
        check((await ollama.chat({ model, messages, format: schema })).message.content);

        const called = [{ type: "function", function: { name: "f", parameters: schema } }];
        for (const tool_choice of ["required", { type: "function", function: { name: "f" } }]) {
            const r = await openai.chat.completions.create(
                { model, messages, tools: called, tool_choice });
            assert.equal(r.choices[0].finish_reason, "tool_calls");
            check(r.choices[0].message.tool_calls[0].function.arguments);
        }
        const output = Output.object({ schema: jsonSchema(schema) });
        check(JSON.stringify((await generateText({ ...vercel, output })).output));
        const object = streamText({ ...vercel, output });
        check(JSON.stringify(await object.output));
        const forced = await generateText({ ...vercel, toolChoice: "required",
            tools: { f: tool({ inputSchema: jsonSchema(schema), strict: true }) } });
        check(JSON.stringify(forced.toolCalls[0].input));

        const use = await anthropic.messages.create({ model, messages, max_tokens: 1500,
            tools: [{ name: "f", input_schema: schema }], tool_choice: { type: "any" } });
        assert.equal(use.stop_reason, "tool_use");
        await assert.rejects(openai.chat.completions.create({ model, messages, response_format: {
            type: "json_schema", json_schema: { name: "s", schema: { contains: {} } } } }),
            (e) => e.status === 400 && e.message.includes('"contains" at #'));
    },

    // calls three tools, one after the other, and answers when their results have come back
    async agent() {
        const folder = await mkdtemp(join(tmpdir(), "agent-"));
        const shapes = { list_files: z.object({}), read_file: z.object({ path: z.string() }),
            write_file: z.object({ path: z.string(), text: z.string() }) };
        const work = {
            list_files: async () => (await readdir(folder)).join("\n"),
            read_file: async ({ path }) => readFile(join(folder, path), "utf8"),
            write_file: async ({ path, text }) => {
                await writeFile(join(folder, path), text);
                return "written";
            },
        };
        const names = Object.keys(work);
        const check = async (answer, n) => {
            assert.equal(answer, "Done: 42.");
            assert.equal(n, 4);
            assert.equal(await readFile(join(folder, "out.txt"), "utf8"), "42");
            await rm(join(folder, "out.txt"));
        };
        const prompt = "Do what the notes say.";

        await writeFile(join(folder, "notes.txt"), "six times seven");
        const loop = new ToolLoopAgent({ model: provider(model), maxRetries: 0,
            stopWhen: stepCountIs(10), tools: Object.fromEntries(names.map((n) =>
                [n, tool({ description: n, inputSchema: shapes[n], execute: work[n] })])) });
        const done = await loop.generate({ prompt });
        await check(done.text, done.steps.length);
        assert.deepEqual(done.steps.flatMap((s) => s.toolCalls.map((c) => c.toolName)), names);
        const streamed = await loop.stream({ prompt });
        await check(await streamed.text, (await streamed.steps).length);

        setTracingDisabled(true);
        const agent = new Agent({ name: "clerk", instructions: "You are a clerk.",
            model: new OpenAIChatCompletionsModel(openai, model), tools: names.map((n) =>
                agentTool({ name: n, description: n, strict: false, execute: work[n],
                    parameters: { ...z.toJSONSchema(shapes[n]),
                        additionalProperties: true } })) });
        const whole = await run(agent, prompt);
        await check(whole.finalOutput, whole.rawResponses.length);
        const events = await run(agent, prompt, { stream: true });
        for await (const event of events)
            assert.ok(event.type);
        await events.completed;
        await check(events.finalOutput, events.rawResponses.length);
        await rm(folder, { recursive: true });
    },

    // never ends
    async cancel() {
        await assert.rejects(openai.chat.completions.create({ model, messages, n: 2 }),
            (e) => e instanceof OpenAI.BadRequestError && e.param === "n");
        await assert.rejects(openai.chat.completions.create({ model: "x", messages }),
            OpenAI.NotFoundError);
        await assert.rejects(anthropic.messages.create(
            { model, messages, max_tokens: 9, container: "x" }), Anthropic.BadRequestError);
        await assert.rejects(ollama.chat({ model: "x", messages }), /no model/);

        const stream = await openai.chat.completions.create({ model, messages, stream: true });
        for await (const part of stream)
            if (part.choices[0].delta.content)
                break;
        const abort = new AbortController();
        const other = openai.chat.completions.create({ model, messages },
            { signal: abort.signal });
        abort.abort();
        await assert.rejects(other, OpenAI.APIUserAbortError);
        const events = anthropic.messages.stream({ model, messages, max_tokens: 1 << 20 });
        events.on("text", () => events.abort());
        await assert.rejects(events.finalMessage(), Anthropic.APIUserAbortError);
        const parts = await ollama.chat({ model, messages, stream: true });
        await assert.rejects(async () => {
            for await (const part of parts)
                if (part.message.content)
                    parts.abort();
        }, { name: "AbortError" });
        await assert.rejects(generateText({ ...vercel, model: provider("x") }),
            (e) => e.statusCode === 404 && /no model/.test(e.message));
        await assert.rejects(generateText({ ...vercel, temperature: -1 }),
            (e) => e.statusCode === 400 && e.data.error.param === "temperature");
        const stop = new AbortController();
        let n = 0;
        const aborted = streamText({ ...vercel, abortSignal: stop.signal });
        for await (const part of aborted.fullStream) {
            if (part.type === "text-delta" && ++n === 1)
                stop.abort();
            if (part.type === "abort")
                n = -1;
        }
        assert.equal(n, -1);
        const next = await openai.chat.completions.create({ model, messages, max_tokens: 2 });
        assert.equal(next.choices[0].message.content, "ab");
    },
};

await cases[name]();
console.log(`${name}: passed`);
