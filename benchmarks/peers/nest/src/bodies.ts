// The bodies of requests, checked by Nest's ValidationPipe.
import { Type } from "class-transformer";
import {
  ArrayMaxSize, IsArray, IsBoolean, IsEmail, IsIn, IsInt, IsMongoId, IsNumber, IsOptional, IsString, Matches, MaxLength, Min,
  MinLength, ValidateNested,
} from "class-validator";

const DATE = /^\d{4}-\d\d-\d\d$/;

export class NewCustomer {
  @IsString() @MinLength(1) @MaxLength(200) name: string;
  @IsOptional() @IsString() @MaxLength(200) surname?: string;
  @IsOptional() @IsEmail() email?: string;
  @IsOptional() @IsString() @MaxLength(50) phone?: string;
  @IsOptional() @Matches(DATE) birthday?: string;
  @IsOptional() @IsString() timezone?: string;
  @IsOptional() @IsBoolean() sendInvitation?: boolean;
}

export class PlannedSet {
  @IsIn(["reps_load"]) type: string;
  @IsInt() @Min(1) index: number;
  @IsInt() @Min(0) minPlannedReps: number;
  @IsInt() @Min(0) maxPlannedReps: number;
  @IsOptional() @IsNumber() @Min(0) load?: number;
  @IsOptional() @IsInt() @Min(0) rest?: number;
  @IsOptional() @IsBoolean() isWarmup?: boolean;
}

export class NewItem {
  @IsIn(["EXERCISE"]) type: string;
  @IsMongoId() exerciseId: string;
  @IsArray() @ArrayMaxSize(50) @ValidateNested({ each: true }) @Type(() => PlannedSet) exerciseSets: PlannedSet[];
  @IsOptional() @IsString() @MaxLength(5000) exerciseInstructions?: string;
}

export class DoneSet {
  @IsIn(["reps_load"]) type: string;
  @IsInt() @Min(1) index: number;
  @IsInt() @Min(0) reps: number;
  @IsNumber() @Min(0) load: number;
}

export class Log {
  @IsBoolean() isCompleted: boolean;
  @IsArray() @ArrayMaxSize(50) @ValidateNested({ each: true }) @Type(() => DoneSet) customerSets: DoneSet[];
}

export class LoadChange {
  @IsNumber() add: number;
}

export class Progression {
  @ValidateNested() @Type(() => LoadChange) load: LoadChange;
}

export class Copy {
  @Matches(DATE) startDate: string;
  @Matches(DATE) endDate: string;
  @Matches(DATE) targetDate: string;
  @ValidateNested() @Type(() => Progression) progression: Progression;
}
