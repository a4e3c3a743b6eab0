// The peer NestJS: the Express adapter, mongoose with lean documents, mongoose-paginate-v2, NODE_ENV=production.
import "reflect-metadata";
import {
  Body, Controller, DefaultValuePipe, Get, Headers, HttpCode, Module, Param, ParseBoolPipe, ParseIntPipe, Post, Put, Query, ValidationPipe,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import mongoose from "mongoose";
import { Copy, Log, NewCustomer, NewItem } from "./bodies.js";
import { CoachingService, type ItemPath } from "./service.js";

const KEY = "x-api-key";
const ITEMS = "customers/:customerId/wblocks/:wblockId/witems";

@Controller("coach")
class CoachController {
  constructor(private readonly service: CoachingService) {}

  @Get("customers")
  listCustomers(
    @Headers(KEY) key: string,
    @Query("archived", ParseBoolPipe) archived: boolean,
    @Query("pageNum", ParseIntPipe) page: number,
    @Query("pageSize", ParseIntPipe) size: number,
  ) {
    return this.service.listCustomers(key, archived, page, size);
  }

  @Get("attention")
  listAttention(@Headers(KEY) key: string, @Query("limit", new DefaultValuePipe(20), ParseIntPipe) limit: number) {
    return this.service.listAttention(key, limit);
  }

  @Get("events")
  listEvents(
    @Headers(KEY) key: string,
    @Query("after", ParseIntPipe) after: number,
    @Query("limit", ParseIntPipe) limit: number,
  ) {
    return this.service.listEvents(key, after, limit);
  }
}

// The week: as it is stored below /coach, and below /presented with the same response as the service's.
@Controller("coach")
class StoredWeek {
  protected readonly presented: boolean = false;
  constructor(private readonly service: CoachingService) {}

  @Get("customers/:customerId/wblock")
  readCalendar(
    @Headers(KEY) key: string,
    @Param("customerId") customer: string,
    @Query("startDate") first: string,
    @Query("endDate") last: string,
  ) {
    return this.service.readCalendar(key, customer, first, last, this.presented);
  }
}

@Controller("presented")
class PresentedWeek extends StoredWeek {
  protected override readonly presented = true;
  constructor(service: CoachingService) {
    super(service);
  }
}

// The writes: alone below /coach, and below /logged with all writes of the service in one transaction.
@Controller("coach")
class PlainWrites {
  protected readonly complete: boolean = false;
  constructor(private readonly service: CoachingService) {}

  @Post("customers")
  createCustomer(@Headers(KEY) key: string, @Body() body: NewCustomer) {
    return this.service.createCustomer(key, body, this.complete);
  }

  @Post(ITEMS)
  addItem(@Headers(KEY) key: string, @Param() path: Object, @Body() body: NewItem) {
    return this.service.addItem(key, path as ItemPath, body, this.complete);
  }

  @Put(`${ITEMS}/:itemId/log`)
  @HttpCode(200)
  logItem(@Headers(KEY) key: string, @Param() path: Object, @Body() body: Log) {
    return this.service.logItem(key, path as ItemPath, body, this.complete);
  }

  @Post("customers/:customerId/schedule/copy")
  copyWeek(@Headers(KEY) key: string, @Param("customerId") customer: string, @Body() body: Copy) {
    return this.service.copyWeek(key, customer, body, this.complete);
  }
}

@Controller("logged")
class CompleteWrites extends PlainWrites {
  protected override readonly complete = true;
  constructor(service: CoachingService) {
    super(service);
  }
}

@Module({ controllers: [CoachController, StoredWeek, PresentedWeek, PlainWrites, CompleteWrites], providers: [CoachingService] })
class PeerModule {}

await mongoose.connect(process.env.MONGODB_URI ?? "", {
  dbName: process.env.MONGODB_DATABASE,
  writeConcern: { w: "majority", journal: true },
});
const app = await NestFactory.create(PeerModule, { logger: ["error", "warn"] });
app.useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true }));
await app.listen(Number(process.env.PORT), "127.0.0.1");
